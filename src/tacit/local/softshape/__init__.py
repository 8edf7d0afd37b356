"""The network of the DP-SoftShape paper, its training and its published noise."""
