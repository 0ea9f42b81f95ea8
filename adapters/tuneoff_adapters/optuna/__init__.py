"""Optuna: long-lived worker processes that ask, train, report and tell over one storage."""
