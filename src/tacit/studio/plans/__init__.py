"""What to expect before training, computed apart from the pages."""
