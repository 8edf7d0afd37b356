"""Public features that need no training: shared by the families."""
