"""One manner of speaking for all commands: choices, completion, help, and results for people."""
