"""Figures and self-contained pages; every one of them carries the guarantee of what it shows."""
