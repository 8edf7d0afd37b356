"""docs/results.md from the records: its tables, and a verdict on every claim of the papers."""
