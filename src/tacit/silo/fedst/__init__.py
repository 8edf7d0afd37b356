"""FedST itself: the program that every owner runs, and its parts."""
