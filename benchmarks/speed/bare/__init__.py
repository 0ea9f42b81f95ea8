"""Bare best-practice scripts, without tuneoff: what a user of the framework would write by hand."""
