"""A real fleet: its services, nodes, files and keys."""
