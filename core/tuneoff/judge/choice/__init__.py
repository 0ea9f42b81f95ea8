"""Which framework to use: the answer that page, terminal, recommendation and JSON begin with."""
