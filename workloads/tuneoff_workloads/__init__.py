"""Workloads that ship with tuneoff."""
