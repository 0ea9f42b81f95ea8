"""Syne Tune: its tuner in a process of its own, each trial's attempt in a subprocess."""
