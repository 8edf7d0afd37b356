"""What every part needs from the machine: files, locks, threads, progress, seeds."""
