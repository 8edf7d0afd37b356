"""Flower as transport between the server and the nodes."""
