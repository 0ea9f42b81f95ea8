"""Energy of a host, divided among the trials and the rest of a run."""
