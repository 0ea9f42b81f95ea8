"""Optuna: long-lived worker processes that ask, train, report and tell over one journal file."""

from tuneoff_adapters.optuna.adapter import OptunaAdapter

__all__ = ["OptunaAdapter"]
