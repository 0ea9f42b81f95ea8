"""Adapters that ship with tuneoff: one module or package each. A package itself imports nothing, for trials import from it."""
