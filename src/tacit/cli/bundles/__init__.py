"""Commands about a trained model: export it for devices, disclose what it protects."""
