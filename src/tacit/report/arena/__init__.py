"""Pages about the records of suites: one per paper, the frontier, and all of them together."""
