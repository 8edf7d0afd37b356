"""What clients compute before noise, and how the model moves after it."""
