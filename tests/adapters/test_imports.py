"""Importing an adapter stays cheap: what runs an experiment is not imported before it is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

SYNE_TUNE = {"syne_tune", "pandas", "torch"}
RECORD = {"msgspec", "multiprocessing"}  # what reads events and starts workers: `tuneoff adapters` does neither


@pytest.mark.parametrize(
    ("modules", "heavy"),
    [
        ("tuneoff_adapters.serial", RECORD),
        ("tuneoff_adapters.optuna.adapter", {"optuna", "sqlalchemy", "numpy", *RECORD}),
        ("tuneoff_adapters.ray_tune.adapter", {"ray", "numpy", *RECORD}),
        ("tuneoff_adapters.ray_tune.trainable", {"msgspec", "tuneoff.adapter", "tuneoff.record.run_context"}),  # in every actor
        ("tuneoff_adapters.syne_tune.adapter", {*SYNE_TUNE, *RECORD}),
        ("tuneoff_adapters.syne_tune.reporter", {*SYNE_TUNE, "tuneoff_adapters.syne_tune.adapter"}),  # in every trial
        ("tuneoff_adapters.katib.adapter", {"kubernetes", "kubeflow", "msgspec", "subprocess", "tuneoff_adapters.katib.follow"}),
        ("tuneoff_adapters.katib.offers", {"kubernetes", "kubeflow", "optuna", "pydantic", "urllib3"}),
        ("katib_emulation.cluster, katib_emulation.__main__", {"tuneoff", "kubernetes", "kubeflow", "optuna", "numpy"}),
    ],
)
def test_nothing_is_imported_that_is_not_needed_yet(modules: str, heavy: set[str]) -> None:
    command = [sys.executable, "-c", f"import sys, {modules}; print(*sys.modules)"]
    loaded = set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert loaded >= set(modules.split(", "))
    assert loaded & heavy == set()
