"""Run one trial: the same function in every framework."""
