"""The emulated ConfigMap `katib-config`: which services this Katib has."""

from __future__ import annotations

ALGORITHMS = ("random", "grid", "multivariate-tpe")
EARLY_STOPPINGS = ("medianstop",)
COLLECTORS = ("StdOut", "File")

AUTO_INJECTED = ("StdOut", "TensorFlowEvent", "File", "PrometheusMetric")
"""The collector kinds of Katib that need an entry in katib-config."""


def missing_algorithm(name: str) -> str:
    """Say that there is no service for an algorithm."""
    return (
        f"unable to get Suggestion config data for algorithm {name}: "
        f"failed to find suggestion config for algorithm: {name} in ConfigMap: katib-config"
    )


def missing_early_stopping(name: str) -> str:
    """Say that there is no service for an early stopping."""
    return (
        f"unable to get EarlyStopping config data for algorithm {name}: "
        f"failed to find early stopping config for algorithm: {name} in ConfigMap: katib-config"
    )


def missing_collector(kind: str) -> str:
    """Say that there is no image for a collector."""
    return (
        "GetMetricsCollectorConfigData failed: "
        f"failed to find metrics collector config for kind: {kind} in ConfigMap: katib-config"
    )
