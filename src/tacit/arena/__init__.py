"""Compare methods: suites of tasks, a runner that may be stopped anywhere, and statistics."""
