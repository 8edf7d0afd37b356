"""Suites of fleets, and the rivals that train on the same features."""
