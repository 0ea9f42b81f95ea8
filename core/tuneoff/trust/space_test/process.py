"""The process in which an adapter draws, from its supervisor's side: it has a time limit, and nothing of it is left."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuneoff.base.format import counted
from tuneoff.base.process_limits import thread_environment
from tuneoff.base.processes import MARK, in_session, with_mark
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.store import RUNS
from tuneoff.run.child import ask
from tuneoff.run.supervisor.guardian import Announce, temporary_folder
from tuneoff.run.supervisor.leftovers import RESULTS_MARK
from tuneoff.run.supervisor.prepare import new_execution, write_inputs
from tuneoff.run.supervisor.run import short_path
from tuneoff.trust.space_test.draw import DRAWS, FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What the process wrote: a state of `tuneoff.trust.space_test.draw`, the configurations, and how the mapping's test went."""

    state: str
    text: str = ""
    configurations: list[dict[str, Any]] = field(default_factory=list)
    problems: dict[str, list[str]] | None = None
    mapping_text: str = ""


def draw_in_process(
    spec: RunSpec,
    count: int,
    seed: int,
    seconds: float,
    way_out: str = "raise --timeout, or lower --draws",
    announce: Announce = lambda folder: None,
) -> Drawing:
    """Have the adapter of `spec` draw `count` configurations under `seed`, in a fresh process of its own session.

    `way_out`: what to do where `seconds` were too few. `announce` is told of each temporary folder.
    """
    budget = replace(spec.experiment.budget, trials=count)
    spec = replace(spec, seed=seed, experiment=replace(spec.experiment, budget=budget))
    with temporary_folder(announce) as folder:
        execution = new_execution(spec, folder / RUNS)
        write_inputs(execution)
        with short_path(folder) as short:
            (short / "tmp").mkdir()
            environment = {
                **os.environ,
                **thread_environment(spec.experiment.workers.threads),
                MARK: execution.execution_id,
                RESULTS_MARK: str(folder),
                "TMPDIR": str(short / "tmp"),
                "PYTHONHASHSEED": "0",  # as in a run
            }
            request = {"run_dir": str(execution.folder), "count": count}
            answer, end = ask(
                "tuneoff.trust.space_test.draw",
                execution.folder,
                request,
                seconds,
                environment,
                remains=lambda pid: {*with_mark(MARK, execution.execution_id), *in_session(pid)},
            )
        drawn = _draws(execution.folder / DRAWS)
    if answer is None:
        text = f"the process that draws {end.text}"
        if end.code is None:
            text = f"after {seconds:g} s the process that draws had given {counted(len(drawn), 'configuration')}; {way_out}"
        return Drawing(state=FAILED, text=text, configurations=drawn)
    mapping = answer["mapping"] or {"problems": None, "text": answer["text"]}
    return Drawing(
        state=answer["state"],
        text=answer["text"],
        configurations=drawn,
        problems=mapping["problems"],
        mapping_text=mapping["text"],
    )


def _draws(path: Path) -> list[dict[str, Any]]:
    """Return the configurations of the whole lines; a line that a killed process was writing has no end."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
