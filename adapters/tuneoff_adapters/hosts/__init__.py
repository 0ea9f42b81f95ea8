"""Hosts of a run beyond the one that tuneoff runs on: reached by a command, checked, aligned, cleaned."""
