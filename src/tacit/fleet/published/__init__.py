"""DP-TimeFL as the paper has it."""
