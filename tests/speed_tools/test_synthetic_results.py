"""The results folder that `verify` is timed on is one that it verifies."""

from __future__ import annotations

from pathlib import Path

from benchmarks.speed.synthetic_results import SAMPLES_PER_RUN, write_results
from tuneoff.trust.verify.results import verify


def test_synthetic_results_are_verified_run_by_run(tmp_path: Path) -> None:
    size = write_results(tmp_path / "results", runs=3, trials=4, epochs=2)
    found = verify(tmp_path / "results")
    assert found.problems == []
    assert [(outcome.trials, outcome.events, outcome.samples) for outcome in found.outcomes] == [(4, 51, SAMPLES_PER_RUN)] * 3
    assert 0.9 < size / sum(path.stat().st_size for path in (tmp_path / "results" / "runs").rglob("*.*")) < 1.1
