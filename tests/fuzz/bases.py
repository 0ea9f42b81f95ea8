"""What the experiment files are made of: the files in `benchmarks/`, the examples of the documentation, and their neighbours."""

from __future__ import annotations

import functools
import re
import shutil
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
LEAST = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 6, "epochs_per_trial": 2}}
PRICES = ROOT / "core" / "tuneoff" / "experiment" / "accounting" / "tables" / "prices.yaml"
SERIES = "time,g_per_kwh\n2026-05-01T13:00:00+02:00,250\n2026-05-01T14:00:00+02:00,240.5\n2026-05-01T15:00:00+02:00,230\n"
SPACE = {
    "learning_rate": {"type": "float", "low": 0.0001, "high": 1.0, "log": True},
    "layers": {"type": "int", "low": 1, "high": 9, "step": 2},
    "activation": {"type": "categorical", "choices": ["relu", "tanh", None, 1.5]},
    "width": {"type": "ordered", "values": [8, 16, 32]},
    "depth": {"type": "constant", "value": 3},
}


@functools.cache
def texts() -> tuple[str, ...]:
    """Return valid files as text: those of `benchmarks/`, of the tests, and the documentation's."""
    files = sorted([*(ROOT / "benchmarks").glob("*.yaml"), ROOT / "tests" / "e2e" / "kill_matrix.yaml", PRICES])
    return (*(file.read_text(encoding="utf-8") for file in files), *(yaml.safe_dump(example) for example in _examples()))


@functools.cache
def trees() -> tuple[dict[str, Any], ...]:
    """Return valid files as mappings, so that structure can be changed."""
    found = [yaml.safe_load(text) for text in texts()]
    return (*(tree for tree in found if "workload" in tree or "include" in tree), *_rich())


def _examples() -> list[dict[str, Any]]:
    """Return the documentation's indented examples, made whole where they are a part of a file."""
    found = []
    for page in ("experiments.md", "energy.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for block in re.findall(r"(?:^    .*\n)+", text, flags=re.MULTILINE):
            try:
                tree = yaml.safe_load(block)
            except yaml.YAMLError:
                continue
            if isinstance(tree, dict) and all(isinstance(key, str) and key.isidentifier() for key in tree):
                found.append({**LEAST, **tree})
    return found


def _rich() -> list[dict[str, Any]]:
    """Return files that use what the others do not."""
    everything = {
        "name": "all",
        "workload": {"name": "surrogate", "options": {"noise": 0.1}},
        "search_space": {"learning_rate": SPACE["learning_rate"]},
        "objective": {"metric": "validation_accuracy", "goal": 0.9},
        "sampler": {"name": "tpe", "n_startup_trials": 3},
        "pruner": {"name": "asha", "first_rung_epochs": 1, "reduction_factor": 3},
        "budget": {"trials": 8, "epochs_per_trial": 9, "epochs_total": 50, "wall_clock_seconds": 30.5},
        "workers": {"count": 2, "cpus": 0.5, "memory_mb": 500},
        "timeouts": {"trial_seconds": 60, "silence_seconds": 30, "trials_seconds": 600, "undeploy_seconds": 5},
        "failures": {"retries": 1, "max_failed_trials": 3},
        "seeds": {"count": 3, "first": 5},
        "adapters": ["serial", {"name": "optuna", "options": {}}, {"name": "katib", "platform": "emulated"}, "ray-tune"],
        "analysis": {"primary_metric": "time.jct", "margin_percent": 5.0, "confidence": 0.9},
        "power": {"meter": "constant", "options": {"watts": 50}, "interval_seconds": 0.2},
        "carbon": {"series": "series.csv", "source": "a supplier", "date": 2025},
        "prices": "prices.yaml",
        "zip": [{"workers.count": [1, 2], "budget.trials": [4, 8]}],
    }
    space = {**LEAST, "workload": "null", "search_space": SPACE, "matrix": {"sampler": ["random", "grid", "sobol"]}}
    fixed = {
        **LEAST,
        "sampler": "fixed",
        "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        "configurations": [{"x": 0.25}, {"x": 0.5}, {"x": 1.0}],
        "pruner": "scripted",
        "stops": [{"index": 1, "after_epoch": 1}, {"configuration": {"x": 0.5}, "after_epoch": 1}],
    }
    return [everything, space, fixed, {**LEAST, "include": ["digits.yaml", "overhead.yaml"], "matrix": None}]


def write_neighbours(folder: Path) -> None:
    """Put beside a case's file what the valid files include and name."""
    for file in sorted((ROOT / "benchmarks").glob("*.yaml")):
        shutil.copy(file, folder)
    shutil.copy(PRICES, folder)
    (folder / "series.csv").write_text(SERIES)
