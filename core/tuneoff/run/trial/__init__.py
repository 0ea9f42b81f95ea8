"""The trial: the same code in every framework."""
