"""A real fleet: its services, nodes, files and keys."""

from tacit.system.extras import needs

# What a light node needs; the services and Flower's part ask for the rest of the extra.
needs("fleet", "httpx", what="a deployed fleet")
