"""Runs of several parties as the studio shows them: a silo before, during and after, a fleet."""
