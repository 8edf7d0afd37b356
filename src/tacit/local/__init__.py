"""The local family: one device protects the series that it releases (DP-SoftShape)."""
