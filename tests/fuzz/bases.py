"""What the experiment files are made of: the files in `benchmarks/`, one that uses what they do not, and their neighbours."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PRICES = ROOT / "core" / "tuneoff" / "experiment" / "accounting" / "tables" / "prices.yaml"
SERIES = "time,g_per_kwh\n2026-05-01T13:00:00+02:00,250\n2026-05-01T14:00:00+02:00,240.5\n2026-05-01T15:00:00+02:00,230\n"
EVERYTHING = {
    "name": "all",
    "workload": {"name": "surrogate", "options": {"noise": 0.1}},
    "search_space": {
        "learning_rate": {"type": "float", "low": 0.0001, "high": 1.0, "log": True},
        "layers": {"type": "int", "low": 1, "high": 9, "step": 2},
        "activation": {"type": "categorical", "choices": ["relu", "tanh", None, 1.5]},
        "width": {"type": "ordered", "values": [8, 16, 32]},
        "depth": {"type": "constant", "value": 3},
    },
    "objective": {"metric": "validation_accuracy", "goal": 0.9},
    "sampler": "fixed",
    "configurations": {"sample": 4, "seed": 1},
    "pruner": "scripted",
    "stops": [{"index": 1, "after_epoch": 1}],
    "budget": {"trials": 4, "epochs_per_trial": 9, "epochs_total": 50, "wall_clock_seconds": 30.5},
    "workers": {"count": 2, "cpus": 0.5, "memory_mb": 500},
    "timeouts": {"trial_seconds": 60, "silence_seconds": 30, "trials_seconds": 600, "undeploy_seconds": 5},
    "failures": {"retries": 1, "max_failed_trials": 3},
    "seeds": {"count": 3, "first": 5},
    "adapters": ["serial", {"name": "optuna", "options": {}}, "ray-tune"],
    "analysis": {"primary_metric": "time.jct", "margin_percent": 5.0, "confidence": 0.9},
    "power": {"meter": "constant", "options": {"watts": 50}, "interval_seconds": 0.2},
    "carbon": {"series": "series.csv", "source": "a supplier", "date": "2025"},
    "prices": "prices.yaml",
    "matrix": {"failures.retries": [0, 1]},
    "zip": [{"workers.count": [1, 2], "timeouts.test_seconds": [4, 8]}],
}


@functools.cache
def texts() -> tuple[str, ...]:
    """Return valid files as text."""
    files = (file.read_text(encoding="utf-8") for file in sorted((ROOT / "benchmarks").glob("*.yaml")))
    return (*files, *[yaml.safe_dump(EVERYTHING, sort_keys=False)] * 30)  # it has the most to spoil


@functools.cache
def trees() -> tuple[dict[str, Any], ...]:
    """Return valid files as mappings, so that structure can be changed."""
    return tuple(map(yaml.safe_load, texts()))


def write_neighbours(folder: Path) -> None:
    """Put beside a case's file what the valid files include and name."""
    for file in (*(ROOT / "benchmarks").glob("*.yaml"), PRICES):
        shutil.copy(file, folder)
    (folder / "series.csv").write_text(SERIES)
