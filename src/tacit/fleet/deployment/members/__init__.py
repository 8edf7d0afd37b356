"""Who belongs to a fleet, and how that changes while it runs: codes, lists, keys, next runs."""
