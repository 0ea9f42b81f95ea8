"""Records of runs, trials, attempts and epochs: derived from events, stored as `run.json`."""
