"""Un-deploy again what executions have left outside this machine: their command was killed, or the cluster was away."""

from __future__ import annotations

import json
import logging
import tempfile
import time
from pathlib import Path

from tuneoff.errors import TuneoffError
from tuneoff.experiment.checked import checked_run_spec
from tuneoff.files import read_regular_text
from tuneoff.lifecycle.context import SPEC
from tuneoff.supervisor.coordinator import Coordinator
from tuneoff.supervisor.leftovers import OUTSIDE, left_outside
from tuneoff.supervisor.prepare import Execution

log = logging.getLogger(__name__)

LEAST_SECONDS = 2.0  # with less time none is begun
START_SECONDS = 2.0  # for the process itself


def undeploy_outside(results: Path, within_seconds: float) -> list[str]:
    """Un-deploy each execution with something outside, in fresh processes; return one line on each that may still have it.

    To be called when no process of the results folder is left.
    """
    deadline = time.monotonic() + within_seconds
    left = []
    for note in sorted(results.glob(f"runs/*/*/{OUTSIDE}")):
        seconds = deadline - time.monotonic()
        if seconds >= LEAST_SECONDS:
            _undeploy(note.parent, results, seconds)
        left += left_outside(note.parent)
    return left


def _undeploy(folder: Path, results: Path, seconds: float) -> None:
    try:
        stored = json.loads(read_regular_text(folder / SPEC))
        execution = Execution(spec=checked_run_spec(stored["run"]), execution_id=stored["execution_id"], folder=folder)
    except (OSError, ValueError, KeyError, TypeError, TuneoffError) as error:  # made by another version, or damaged
        log.warning("%s cannot be un-deployed: %s", folder, error)
        return
    fresh = Coordinator(execution, results, Path(tempfile.gettempdir()), undeploy_seconds=max(1.0, seconds - START_SECONDS))
    try:
        fresh.wait(seconds)
        fresh.kill_all()
    finally:
        fresh.close()
