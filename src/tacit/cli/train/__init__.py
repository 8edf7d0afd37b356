"""`tacit train`: one module for each family whose training has many options."""
