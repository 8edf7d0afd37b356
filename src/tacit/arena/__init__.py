"""The honest comparison: suites of tasks, a runner that survives, statistics that hold."""
