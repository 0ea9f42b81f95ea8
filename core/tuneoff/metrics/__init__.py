"""Metrics, derived from records by pure functions: one module per family, `all` puts them together."""
