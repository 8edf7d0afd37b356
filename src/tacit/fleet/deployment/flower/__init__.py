"""Flower as transport between the server and the nodes."""

from tacit.system.extras import needs

needs("fleet", "flwr", "tomli_w", what="a deployed fleet")
