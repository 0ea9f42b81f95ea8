"""The lifecycle of a run: seven timed steps, in a process of its own (the coordinator)."""
