"""Bundles: one archive with all that a results folder proves, and the answer whether it is reproduced elsewhere."""
