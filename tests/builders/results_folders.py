"""Results folders as a matrix leaves them, without a run: event logs, samples and prices of the worked examples."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs

from builders.event_logs import Log, example_a, example_b
from builders.made_runs import plan_of, planned_run
from builders.worked_examples import write_example
from tuneoff.base.layout import PLAN, RUNS
from tuneoff.experiment.spec import RunSpec, run_spec_to_json
from tuneoff.measure.derived import derive_folder
from tuneoff.measure.stored import read_run
from tuneoff.record.end import ExecutionEnd, key_of, read_end, seal, write_end
from tuneoff.record.endings import Ruling
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import write_run
from tuneoff.trust.verify.results import verify

EXECUTION = "run1-abc"  # of the examples' logs


class Results:
    """A results folder that is being filled; `runs` are the planned ones, in the order of the plan."""

    def __init__(self, path: Path, specs: Sequence[RunSpec], skipped: Sequence[int] = ()) -> None:
        self.path = path
        why = "adapter 'x' needs the x package"
        runs = [planned_run(spec, skip_reason=why if place in skipped else None) for place, spec in enumerate(specs)]
        self.plan = plan_of(runs, name="example", analysis={"metric": "time.jct"})
        path.mkdir(parents=True)
        (path / PLAN).write_text(json.dumps(self.plan.to_json(), indent=1) + "\n")

    def folder(self, spec: RunSpec, execution: str = EXECUTION) -> Path:
        """Return the folder of an execution."""
        return self.path / RUNS / spec.run_id / execution

    def finish(self, spec: RunSpec, execution: str = EXECUTION, ruling: Ruling | None = None, **environment: Any) -> RunRecord:
        """Write `spec.json` and the record of an execution whose raw files are there."""
        folder = self.folder(spec, execution)
        stored = {"execution_id": execution, "run_id": spec.run_id, "run": run_spec_to_json(spec)}
        (folder / "spec.json").write_text(json.dumps(stored))
        frozen = {"analysis_digest": self.plan.analysis_digest, **environment}
        end = ExecutionEnd(ruling=ruling, versions={"framework": "none"}, environment=frozen, sealed=seal(folder))
        record = derive_folder(folder, spec, end).record
        write_run(folder, record, key_of(write_end(folder, end)))
        return record

    def add_log(self, spec: RunSpec, log: Log, ruling: Ruling | None = None) -> Path:
        """Add an execution that left these events and nothing else."""
        folder = self.folder(spec, log.execution)
        log.save(folder / "events")
        self.finish(spec, log.execution, ruling)
        return folder


def write_examples(path: Path, seeds: Sequence[int] = (0,)) -> Results:
    """Write a results folder with both worked examples: A with each seed, then B."""
    specs = example_specs(tuple(seeds))
    results = Results(path, specs)
    for name, content in _example_files(tuple(seeds)).items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return results


def example_specs(seeds: tuple[int, ...]) -> list[RunSpec]:
    """Return the specifications of example A with each seed, and of example B."""
    return [*(replace(example_a()[1], seed=seed) for seed in seeds), replace(example_b()[1], adapter="optuna")]


@functools.cache
def _example_files(seeds: tuple[int, ...]) -> Mapping[str, bytes]:
    """Return the files of the worked examples' executions, derived once."""
    with tempfile.TemporaryDirectory() as folder:
        specs = example_specs(seeds)
        results = Results(Path(folder, "results"), specs)
        for spec in specs:
            write_example(results.folder(spec), "A" if spec is not specs[-1] else "B")
            results.finish(spec)
        paths = [path for path in (results.path / RUNS).rglob("*") if path.is_file()]
        return {path.relative_to(results.path).as_posix(): path.read_bytes() for path in paths}


def edit(path: Path, change: Callable[[str], str]) -> None:
    """Change a file's text; it must change."""
    before = path.read_text()
    after = change(before)
    assert after != before, f"nothing changed in {path}"
    path.write_text(after)


def execution(results: Path, adapter: str) -> Path:
    """Return the folder of example A (`serial`) or B (`optuna`)."""
    found = [path.parent for path in results.glob("runs/*/*/end.json") if read_run(path.parent).run_spec().adapter == adapter]
    assert len(found) == 1
    return found[0]


def events_of(folder: Path, trial: str) -> Path:
    """Return the file of the process that ran a trial."""
    return next(path for path in sorted((folder / "events").glob("[wt]*")) if f'"trial":"{trial}"' in path.read_text())


def lines(results: Path) -> list[str]:
    """Return what verifying says, one line per problem."""
    found = verify(results)
    assert all("\n" not in problem.line for problem in found.problems)
    return [problem.line for problem in found.problems]


def reseal(folder: Path) -> None:
    """Write new seals, as somebody would who covers a change."""
    record = read_run(folder)
    end = structs.replace(read_end(folder), sealed=seal(folder))
    write_run(folder, record, key_of(write_end(folder, end)))
