"""A real fleet: its services, nodes, files and keys."""

from tacit.system.extras import needs

needs("fleet", "flwr", "fastapi", "uvicorn", "httpx", "tomli_w", what="a deployed fleet")
