"""Where a collector keeps devices and releases: SQLite or PostgreSQL, behind one store."""
