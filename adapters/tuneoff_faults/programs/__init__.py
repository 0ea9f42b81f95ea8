"""Plain programs of frameworks: each by its documentation and its defaults, without an adapter."""
