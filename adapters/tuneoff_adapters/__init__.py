"""Adapters that ship with tuneoff: one module or package per framework."""
