"""Bundles and results folders as strangers write them: one run that is done, and of itself they say what they like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders.bundles import packed
from builders.event_logs import example_a
from builders.results_folders import Results
from builders.worked_examples import write_example
from tuneoff.base.layout import PLAN
from tuneoff.experiment.spec import RunSpec


def folder_of(
    path: Path, spec: RunSpec | None = None, said: Mapping[str, Any] | None = None, plan: Mapping[str, Any] | None = None
) -> Path:
    """Write a results folder with worked example A as a run of `spec`.

    `said`: what its plan says of the run beside the specification (label); `plan`: other parts of the plan.
    """
    spec = example_a()[1] if spec is None else spec
    results = Results(path, [spec])
    write_example(results.folder(spec), "A")
    results.finish(spec)
    matrix = json.loads((path / PLAN).read_text())
    matrix["runs"] = [{**run, **(said or {})} for run in matrix["runs"]]
    (path / PLAN).write_text(json.dumps({**matrix, **(plan or {})}))
    return path


def bundle_of(path: Path, spec: RunSpec | None = None, **more: Any) -> Path:
    """Return a bundle `stranger.tar.gz` in the folder `path` of such results."""
    folder = folder_of(path / "stranger", spec, **more)
    return packed(folder, path / "stranger.tar.gz", allow_unverified=True).path


def foreign_spec(workload: Mapping[str, Any] | None = None, **changes: Any) -> RunSpec:
    """Return the specification of example A with parts of its workload, or of the run, changed."""
    spec = example_a()[1]
    experiment = spec.experiment
    if workload is not None:
        experiment = replace(experiment, workload=replace(experiment.workload, **workload))
    return replace(spec, experiment=experiment, **changes)
