"""What a device may send: one module per kind of release, and what a server makes of it."""
