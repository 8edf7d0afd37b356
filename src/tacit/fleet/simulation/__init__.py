"""A whole fleet in one process: for research, tests and the estimator."""
