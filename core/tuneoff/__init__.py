"""tuneoff compares hyperparameter-optimization frameworks: one lifecycle, one workload, one result schema."""

__version__ = "0.1.0"
