"""The connections of one party: its port, the channel between parties, the engine's tunnel."""
