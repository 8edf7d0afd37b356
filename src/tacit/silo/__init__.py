"""Shapelet classifiers for several owners who never show their series: FedST over real MPC."""
