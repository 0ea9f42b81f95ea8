"""Experiments: what to optimize and with what budget; names no framework."""
