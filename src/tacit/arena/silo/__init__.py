"""FedST in the comparison: its suites, its plaintext twin, and its contracts of time."""
