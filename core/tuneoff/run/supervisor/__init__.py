"""Supervision of a run: its process, its limits, its end, and the proof that nothing is left."""
