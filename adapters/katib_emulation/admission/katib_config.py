"""What the emulated ConfigMap `katib-config` lists: which services this Katib has."""

from __future__ import annotations

ALGORITHMS = ("random", "grid", "multivariate-tpe")
EARLY_STOPPINGS = ("medianstop",)
COLLECTORS = ("StdOut", "File")


def missing(what: str, kind: str, name: str) -> str:
    """Say that there is no service of a name, as in `missing("Suggestion", "algorithm", "tpe")`."""
    return (
        f"unable to get {what} config data for algorithm {name}: "
        f"failed to find {what.lower()} config for {kind}: {name} in ConfigMap: katib-config"
    )
