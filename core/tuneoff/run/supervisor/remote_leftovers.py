"""Un-deploy again what executions have left outside this machine: their command was killed, or the cluster was away."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tuneoff.base.files import odd_entries, pinned, read_json
from tuneoff.errors import TuneoffError
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.record.layout import FRAMEWORK, OUTSIDE, SPEC
from tuneoff.record.results_folder import begun
from tuneoff.record.store import RUNS
from tuneoff.run.supervisor.coordinator import Coordinator, Undeploy
from tuneoff.run.supervisor.leftovers import left_outside
from tuneoff.run.supervisor.prepare import Execution, is_named_for, trial_context

log = logging.getLogger(__name__)

LEAST_SECONDS = 2.0  # with less time none is begun
START_SECONDS = 2.0  # for the process itself


def undeploy_outside(results: Path, specs: Mapping[str, RunSpec], within_seconds: float) -> list[str]:
    """Un-deploy each execution with something outside, in fresh processes; return one line on each that may still have it.

    `specs`: the specifications, by run id, that the command was given: what is un-deployed, and how, is theirs, never the
    folder's. To be called when no process of the results folder is left.
    """
    deadline = time.monotonic() + within_seconds
    left = []
    for note in sorted(results.glob(f"runs/*/*/{OUTSIDE}")):
        folder, spec = note.parent, specs.get(note.parent.parent.name)
        seconds = deadline - time.monotonic()
        if spec is None or not is_named_for(spec, folder):
            log.warning("%s is not un-deployed: it is not an execution of this plan; remove the folder", folder)
            continue
        if (odd := _odd(folder)) is not None:
            log.warning("%s is not un-deployed: %s; put a folder of plain files there", folder, odd)
        elif seconds >= LEAST_SECONDS:
            try:
                _undeploy(Execution(spec=spec, execution_id=folder.name, folder=folder), results, seconds)
            except OSError as error:  # a file of the folder is in the way or of somebody else, or the disk is full
                log.warning("%s is not un-deployed: %s; run what its %s says", folder, error, OUTSIDE)
        left += left_outside(folder)
    return left


def undeploy_begun(results: Path, since: int, within_seconds: float) -> list[str]:
    """Do so with the executions that a command has begun, from the place `since` of their list: it wrote their files itself."""
    specs = {}
    try:
        for run_id, execution_id in begun(results)[since:]:
            stored = read_json(results / RUNS / run_id / execution_id / SPEC)
            specs[run_id] = run_spec_from_json(stored["run"])
    except (OSError, ValueError, KeyError, TypeError, TuneoffError) as error:  # the command was killed as it began this one
        log.warning("not all of %s can be un-deployed: %s", results, error)
    return undeploy_outside(results, specs, within_seconds)


def _odd(folder: Path) -> str | None:
    """Return what keeps anything from being written into a folder as if it were one's own; a framework leaves what it likes."""
    try:
        with pinned(folder) as place:
            odd = next(odd_entries(place, besides=FRAMEWORK), None)
            return None if odd is None else f"{odd[0].relative_to(place)} is {odd[1]}"
    except OSError as error:
        return str(error.strerror)


def _undeploy(execution: Execution, results: Path, seconds: float) -> None:
    undeploy = Undeploy(trial_context(execution), max(1.0, seconds - START_SECONDS))
    with tempfile.TemporaryDirectory(prefix="tuneoff-", ignore_cleanup_errors=True) as temporary:  # new: no record names it
        fresh = Coordinator(execution, results, Path(temporary), undeploy)
        try:
            fresh.wait(seconds)
            fresh.kill_all()
        finally:
            fresh.close()
