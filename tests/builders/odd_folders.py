"""A results folder with everything odd that one may hold, and exports of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from builders.event_logs import example_a
from builders.results_folders import Results, write_examples
from builders.stored import write_run
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.spec import run_spec_to_json
from tuneoff.measure.stored import read_run
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.tell.frames.export import Format, export

HOSTILE = "<script>alert(1)</script>\x1b[31m \u202e\u0000\r\n,\"';é漢\U0001f600"


def write_odd(tmp_path: Path) -> Path:
    """Write a results folder and return its path.

    Runs by seed: 0 and 3 done; 1 failed; 2 without trials; 4 replaced by a later execution; 5 unfinished; 6 planned; 7 a
    warm-up; 8 with hostile texts.
    """
    specs = [replace(example_a()[1], seed=seed, warm_up=seed == 7) for seed in range(9)]
    results = Results(tmp_path / "odd", specs)
    source = write_examples(tmp_path / "source")
    done = read_run(next(source.path.glob("runs/*/*/end.json")).parent)
    for spec in specs:
        folder = results.folder(spec, "1")
        if spec.seed == 6:
            continue
        folder.mkdir(parents=True)
        if spec.seed == 5:
            (folder / "events").mkdir()
            continue
        record = replace(
            done, run_id=spec.run_id, execution_id="1", specification=run_spec_to_json(spec), **change(spec.seed, done)
        )
        write_run(folder, record)
        if spec.seed == 4:
            later = results.folder(spec, "2")
            later.mkdir()
            write_run(later, replace(record, execution_id="2", status="done", reason=None, started_at="2027-01-01T00:00:00Z"))
    return results.path


def change(seed: int, done: RunRecord) -> dict[str, Any]:
    """Return what is odd about the run with a seed."""
    if seed == 1:
        return {"status": "failed", "reason": "the trial step failed", "charged": "framework"}
    if seed == 2:
        return {"status": "failed", "reason": "no trial completed", "trials": (), "best": None, "test": None, "metrics": {}}
    if seed == 4:
        return {"status": "interrupted", "reason": "interrupted by the user", "charged": "user"}
    if seed == 8:
        configuration = {HOSTILE: HOSTILE, "x": 1, "only here": None}
        first, *others = done.trials
        attempts = tuple(msgspec.structs.replace(one, state="failed", cause=HOSTILE) for one in first.attempts)
        hostile = replace(
            first,
            trial="hostile",
            framework_id=HOSTILE,
            configuration=configuration,
            digest=configuration_digest(configuration),
            state="failed",
            cause=HOSTILE,
            attempts=attempts,
        )
        return {"status": "failed", "reason": HOSTILE, "trials": (hostile, *others)}
    return {}


def export_to(results: Path, format: Format = "parquet") -> Path:
    """Export as the command does, and return the folder of the tables."""
    export(results, results / "export", format, [run.run_id for run in read_plan(results).runs])
    return results / "export"
