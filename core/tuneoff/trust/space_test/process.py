"""The process in which an adapter draws, from its supervisor's side: it has a time limit, and nothing of it is left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuneoff.base.files import without_links
from tuneoff.base.processes import MARK, end_all, in_session, kill, last_words, with_mark
from tuneoff.experiment.spec import RunSpec
from tuneoff.run.supervisor.coordinator import import_path
from tuneoff.run.supervisor.leftovers import RESULTS_MARK
from tuneoff.run.supervisor.prepare import Execution, new_execution, write_inputs
from tuneoff.run.supervisor.short_path import short_path
from tuneoff.run.supervisor.watcher import Announce
from tuneoff.run.trial.limits import as_parent, thread_environment
from tuneoff.trust.space_test.draw import ANSWER, DRAWS, FAILED

LOG = "log.txt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
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
) -> Answer:
    """Have the adapter of `spec` draw `count` configurations under `seed`, in a fresh process of its own session.

    `way_out`: what to do where `seconds` were too few. `announce` is told of each temporary folder.
    """
    budget = replace(spec.experiment.budget, trials=count)
    spec = replace(spec, seed=seed, experiment=replace(spec.experiment, budget=budget))
    with own_folder(announce) as folder:
        execution = new_execution(spec, folder / "runs")
        write_inputs(execution)
        with short_path(folder) as short:
            code = _run(execution, count, folder, short / "tmp", seconds)
        return _answer(execution.folder, code, seconds, way_out)


@contextmanager
def own_folder(announce: Announce = lambda folder: None) -> Iterator[Path]:
    """Give a temporary folder and remove it."""
    folder = without_links(Path(tempfile.mkdtemp(prefix="tuneoff-")))
    announce(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(execution: Execution, count: int, folder: Path, temporary: Path, seconds: float) -> int | None:
    """Return the exit code, or None where the process was killed for its time."""
    temporary.mkdir()
    environment = {
        **os.environ,
        **thread_environment(execution.spec.experiment.workers.threads),
        MARK: execution.execution_id,
        RESULTS_MARK: str(folder),
        "TMPDIR": str(temporary),
        "PYTHONHASHSEED": "0",  # as in a run
        **import_path(),
        **as_parent(),
    }
    command = [sys.executable, "-m", "tuneoff.trust.space_test.draw", str(execution.folder), str(count)]
    with (execution.folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
        )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill(process.pid)
        process.wait()
        end_all(lambda: {*with_mark(MARK, execution.execution_id), *in_session(process.pid)})


def _answer(folder: Path, code: int | None, seconds: float, way_out: str) -> Answer:
    drawn = _draws(folder / DRAWS)
    if code is None:
        counted = "1 configuration" if len(drawn) == 1 else f"{len(drawn)} configurations"
        text = f"after {seconds:g} s the process that draws had given {counted}; {way_out}"
        return Answer(state=FAILED, text=text, configurations=drawn)
    if not (folder / ANSWER).exists():
        text = f"the process that draws ended with exit code {code}: {last_words(folder / LOG)}"
        return Answer(state=FAILED, text=text, configurations=drawn)
    answer = json.loads((folder / ANSWER).read_text())
    mapping = answer["mapping"] or {"problems": None, "text": answer["text"]}
    return Answer(
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
