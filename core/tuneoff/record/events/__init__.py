"""The event log: what happened, written by each process to its own file; everything else is derived from it."""
