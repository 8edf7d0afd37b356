"""What every service of a fleet has: limits for connections, and health."""
