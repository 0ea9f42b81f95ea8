"""Continuing inside a run: a new execution takes over the finished trials of one that was interrupted."""
