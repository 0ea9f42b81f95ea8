"""Small results folders of every kind, made without running anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.made_runs import made_run, made_spec
from builders.results_folders import Results
from builders.stored import write_run
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.run_record import RunRecord, RunStatus

CURVE = ({"validation_accuracy": 0.5}, {"validation_accuracy": 0.8})
Change = Callable[[RunRecord], RunRecord | None]
ENVIRONMENT = {
    "host": "here",
    "python": "3.12.1",
    "cpu": {"name": "A processor", "logical_count": 2},
    "versions": {"tuneoff": "0.1.0", "numpy": "2.0"},
}


def specs(adapters: Sequence[str], seeds: int, **more: Any) -> list[RunSpec]:
    """Return a run per seed and adapter."""
    return [made_spec(adapter, seed=seed, **more) for seed in range(seeds) for adapter in adapters]


def record(spec: RunSpec, place: int = 0, **changes: Any) -> RunRecord:
    """Return a run that is done; `place` moves its figures a little, so that no two are the same."""
    metrics: Mapping[str, float] = {
        "quality.validation": 0.9 + place / 1000,
        "time.jct": 1000.0 + 10 * place,
        "time.deploy": 1.0,
        "overhead.per_trial": 5.0 + place,
    }
    versions = {"framework": spec.adapter, "framework_version": "1.0"}
    given = {"environment": ENVIRONMENT, "versions": versions, **changes}
    return made_run(spec, [CURVE, CURVE], 0.9 + place / 1000, metrics=metrics, **given)


def folder(
    path: Path, planned: Sequence[RunSpec], changes: Mapping[int, Change] | None = None, skipped: Sequence[int] = ()
) -> Path:
    """Write a folder in which each planned run is done, but for `changes` by place (None: it never ran)."""
    results = Results(path, planned, skipped)
    for place, spec in enumerate(planned):
        made: RunRecord | None = None if place in skipped else record(spec, place)
        if made is not None and changes and place in changes:
            made = changes[place](made)
        if made is not None:
            where = results.folder(spec, made.execution_id)
            where.mkdir(parents=True)
            write_run(where, made)
    return path


def failed(status: RunStatus, reason: str) -> Change:
    """Return what makes a run one that came to nothing."""
    return lambda run: replace(run, status=status, reason=reason, charged="framework", metrics={})


def never(run: RunRecord) -> RunRecord | None:
    """Make a run one that was not begun."""
    return None
