"""Incumbents in the layout of IOHprofiler, for tools that draw ECDFs of running times: a folder per algorithm.

An algorithm is an adapter with its sampler and pruner, a function is a variant of the experiment, an instance a seed, an
evaluation a trial that began. Values are minimized. Source: https://iohprofiler.github.io/IOHanalyzer/data/ and the files that
IOHexperimenter 0.3 writes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.errors import ResultsError
from tuneoff.experiment.identity import canonical_json
from tuneoff.experiment.names import emulated_label, strategy_text, variant_text
from tuneoff.experiment.spec import ExperimentSpec
from tuneoff.frames.executions import executions
from tuneoff.matrix.plan import Plan, PlannedRun
from tuneoff.metrics.incumbent import incumbents
from tuneoff.records.model import RunRecord

FOLDER = "ioh"
VERSION = "0.3.17"  # of IOHexperimenter, whose files these are like
NO_VALUE = sys.float_info.max  # worse than any: no trial has completed yet, or the run failed
COUNTED = ("done", "failed", "timeout")  # a run that was interrupted, skipped or not run yet is missing
HEADER = "evaluations raw_y"
ATTRIBUTES = {  # constants alone: a reader may take such a text for an expression
    "evaluation": "a trial that began",
    "value": "minimized: 1 - metric where the metric is maximized, else the metric",
    "no_value": f"{NO_VALUE!r}: no trial has completed yet, or the run failed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run as a block of a data file: the best value from so many evaluations on, the first at 1, the last at their end."""

    instance: int
    seed: int
    is_done: bool
    points: Sequence[tuple[int, float]]

    def to_json(self) -> dict[str, Any]:
        evaluations, best = min(self.points, key=lambda point: (point[1], point[0]))
        return {
            "instance": self.instance,
            "evals": self.points[-1][0],
            "best": {"evals": evaluations, "y": best, "x": []},
            "seed": self.seed,
            "done": int(self.is_done),
        }


@dataclass(slots=True)
class _Names:
    """Names of files, and numbers from 1, for keys in the order in which they are asked for; no name is given twice."""

    known: dict[str, tuple[int, str]] = field(default_factory=dict)

    def of(self, key: str, text: str) -> tuple[int, str]:
        if key not in self.known:
            base = re.sub(r"[^A-Za-z0-9.+=@-]+", "_", text).strip("._")[:80] or "unnamed"
            taken = {name.lower() for _, name in self.known.values()}
            name, number = base, 2
            while name.lower() in taken:
                name, number = f"{base}_{number}", number + 1
            self.known[key] = (len(self.known) + 1, name)
        return self.known[key]


def write_ioh(results: Path, destination: Path, plan: Plan) -> list[Path]:
    """Write `destination/ioh`, which replaces what an earlier export left there, and return the files of metadata.

    Of several executions of a run the one counts that stands for it.

    Raises:
        ResultsError: a record cannot be read, or the destination cannot be written or holds something else.
    """
    target, parts = destination / FOLDER, destination / f".{FOLDER}.tmp"
    try:
        _check_ours(target)
        shutil.rmtree(parts, ignore_errors=True)
        parts.mkdir(parents=True)
        paths = [_write(parts, *dataset) for dataset in _datasets(results, plan)]
        if target.exists():
            shutil.rmtree(target)
        os.replace(parts, target)
    except OSError as error:
        raise ResultsError(f"{target} cannot be written: {error.strerror or error}; choose another folder") from error
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return [target / path.relative_to(parts) for path in paths]


def points(run: RunRecord) -> list[tuple[int, float]]:
    """Return (trials that had begun, best value from then on), minimized; a run that failed has no value."""
    total = max(1, sum(trial.used_ticket for trial in run.trials))
    is_max = run.run_spec().experiment.objective.mode == "max"
    steps = incumbents(run) if run.status == "done" else []
    best = {step.trials: 1.0 - step.value if is_max else step.value for step in steps}  # the last of those that share a count
    if 1 not in best:
        best = {1: NO_VALUE, **best}
    return [*best.items(), *([(total, [*best.values()][-1])] if total > max(best) else [])]


def _datasets(results: Path, plan: Plan) -> Iterator[tuple[str, int, str, ExperimentSpec, str, list[Run]]]:
    """Yield (algorithm's folder, function's number and name, an experiment, algorithm's name, runs), in the plan's order."""
    planned = {run.run_id: run for run in plan.counted if run.skip_reason is None}
    seeds = sorted({run.spec.seed for run in planned.values()})
    functions, algorithms = _Names(), _Names()
    found: dict[tuple[str, int], tuple[str, int, str, ExperimentSpec, str, list[Run]]] = {}
    for execution in executions(results, list(planned)):
        if not execution.is_selected:
            continue
        record = execution.read()
        if record.run_id not in planned or record.status not in COUNTED:
            continue
        run = planned[record.run_id]
        experiment = run.spec.experiment
        number, function = functions.of(*_function(experiment))
        algorithm = _algorithm(run, record.emulated)
        _, folder = algorithms.of(f"{algorithm} {_options(run)}", algorithm)
        dataset = found.setdefault((folder, number), (folder, number, function, experiment, algorithm, []))
        instance = seeds.index(run.spec.seed) + 1
        is_done = record.status == "done"
        dataset[-1].append(Run(instance=instance, seed=run.spec.seed, is_done=is_done, points=points(record)))
    yield from found.values()


def _function(experiment: ExperimentSpec) -> tuple[str, str]:
    """Return what tells a function from others, and its name."""
    variant = variant_text(experiment.variant)
    workload, objective = experiment.workload, experiment.objective
    key = [workload.name, dict(workload.options), objective.metric, objective.mode, variant, experiment.search_space.to_json()]
    return canonical_json(key), " ".join(filter(None, (workload.name, objective.metric, variant)))


def _algorithm(run: PlannedRun, emulated: bool) -> str:
    label = emulated_label(run.label, run.spec) if run.emulated or emulated else run.label
    return f"{label} {strategy_text(run.spec.experiment)}"


def _options(run: PlannedRun) -> str:
    experiment = run.spec.experiment
    return canonical_json([dict(experiment.sampler.options), dict(experiment.pruner.options), dict(run.spec.options)])


def _write(
    parts: Path, folder: str, number: int, function: str, experiment: ExperimentSpec, algorithm: str, runs: Sequence[Run]
) -> Path:
    """Write the data file and the metadata of one algorithm on one function, and return the path of the latter."""
    dimension = max(1, len(experiment.search_space.searched))
    data = Path(f"data_f{number}_{function}") / f"IOHprofiler_f{number}_DIM{dimension}.dat"
    (parts / folder / data).parent.mkdir(parents=True)
    with (parts / folder / data).open("w", encoding="utf-8") as file:
        for run in runs:
            file.write(f"{HEADER}\n" + "".join(f"{evaluations} {value!r}\n" for evaluations, value in run.points))
    metadata = {
        "version": VERSION,
        "suite": "tuneoff",
        "function_id": number,
        "function_name": function,
        "maximization": False,
        "algorithm": {"name": algorithm, "info": f"incumbents of {experiment.objective.metric}"},
        "experiment_attributes": [{name: text} for name, text in ATTRIBUTES.items()],
        "run_attributes": ["seed", "done"],
        "attributes": HEADER.split(),
        "scenarios": [{"dimension": dimension, "path": data.as_posix(), "runs": [run.to_json() for run in runs]}],
    }
    path = parts / folder / f"IOHprofiler_f{number}_{function}.json"
    path.write_text(json.dumps(metadata, indent=1) + "\n", encoding="utf-8")
    return path


def _check_ours(target: Path) -> None:
    """Refuse a folder that has anything but such files: it would be removed."""
    for path in target.rglob("*"):
        if path.is_symlink() or not (path.is_dir() or re.fullmatch(r"IOHprofiler_.*\.(json|dat)", path.name)):
            raise ResultsError(f"{target} holds {path.name}, which no export wrote; move it, or choose another --output")
