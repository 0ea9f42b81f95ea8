"""Hydra: an application in multirun mode, its Optuna sweeper in the coordinator, its jobs in joblib's processes."""
