"""DP-SoftShape as published in the arena: its two presets, its suites, and its global choices."""
