"""DP-TimeFL: many devices, one model, reports that nobody can link; imports nothing by itself."""
