"""One execution of a run: its folder, the coordinator's process, and un-deploy in a fresh one.

The folder has all that the coordinator and the trials read. The process is started in its own session, and ended by a ladder. A
fresh one un-deploys what is still outside this machine: the command was killed, or the cluster was away.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from tuneoff.base.files import odd_entries, open_to_change, pinned, read_json, replacing
from tuneoff.base.layout import EVENTS, FRAMEWORK, LOG, OUTSIDE, RUNS, SPEC
from tuneoff.base.process_limits import SlotLimits, as_parent, fresh_environment, seeing
from tuneoff.base.process_state import umask
from tuneoff.base.processes import (
    COORDINATOR,
    MARK,
    children,
    descendants,
    end_all,
    in_session,
    is_alive,
    session_of,
    with_mark,
)
from tuneoff.base.targets import load_target
from tuneoff.errors import TuneoffError
from tuneoff.experiment.environments import interpreter
from tuneoff.experiment.spec import RunSpec, run_spec_from_json, run_spec_to_json
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.results_folder import begun
from tuneoff.run.supervisor.leftovers import RESULTS_MARK, left_outside

log = logging.getLogger(__name__)

MEGABYTE = 10**6
LEAST_SECONDS = 2.0  # with less time no un-deploy is begun
START_SECONDS = 2.0  # for its process itself
_COMPILES_ANEW = "PYTHONDONTWRITEBYTECODE"  # each process would compile its imports: overhead of the machine's settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One execution of a run: its identity in the outside world and its folder."""

    spec: RunSpec
    execution_id: str
    folder: Path


def new_execution(spec: RunSpec, runs_folder: Path) -> Execution:
    """Make `<runs_folder>/<run id>/<execution id>/` with its `events` folder; the execution id is new in every call."""
    execution_id = f"{spec.run_id}-{os.urandom(3).hex()}"
    folder = runs_folder / spec.run_id / execution_id
    with pinned(runs_folder / spec.run_id, make=True) as run:
        (run / execution_id).mkdir()  # nobody else's: what is written below it needs no further care
        (run / execution_id / EVENTS).mkdir()
    return Execution(spec=spec, execution_id=execution_id, folder=folder)


def is_named_for(spec: RunSpec, folder: Path) -> bool:
    """Tell whether a folder has a name that `new_execution` gives to an execution of this run."""
    return folder.parent.name == spec.run_id and re.fullmatch(rf"{spec.run_id}-[0-9a-f]{{6}}", folder.name) is not None


def write_inputs(execution: Execution, limits: Sequence[SlotLimits] = ()) -> TrialContext:
    """Write `spec.json` and `trial_context.json`, and return the latter's content."""
    write_spec(execution)
    context = trial_context(execution, limits)
    context.write()
    return context


def write_spec(execution: Execution) -> None:
    with replacing(execution.folder / SPEC) as file:
        file.write(json.dumps(stored(execution), indent=1).encode())


def stored(execution: Execution) -> dict[str, Any]:
    """Return what `spec.json` holds."""
    return {"execution_id": execution.execution_id, "run_id": execution.spec.run_id, "run": run_spec_to_json(execution.spec)}


def trial_context(execution: Execution, limits: Sequence[SlotLimits] = ()) -> TrialContext:
    """Return what an execution's trials are given."""
    experiment = execution.spec.experiment
    memory_mb, budget, objective = experiment.workers.memory_mb, experiment.budget, experiment.objective
    is_ended_by_core = objective.stop and not (
        load_target(execution.spec.adapter_target).capabilities_on(execution.spec.platform).stops_at_goal
    )
    return TrialContext(
        run_dir=str(execution.folder.absolute()),
        execution_id=execution.execution_id,
        workload=experiment.workload.target,
        workload_options=dict(experiment.workload.options),
        metric=objective.metric,
        mode=objective.mode,
        epochs=budget.epochs_per_trial,
        reports=execution.spec.reports,
        trials=budget.trials,
        epochs_total=budget.epochs_total,
        wall_clock_seconds=budget.wall_clock_seconds,
        slots=experiment.workers.count,
        threads=experiment.workers.threads,
        goal=objective.goal if is_ended_by_core else None,
        retries=experiment.failures.retries,
        seed=execution.spec.seed,
        memory_bytes=None if memory_mb is None else int(memory_mb * MEGABYTE),
        limits=tuple(limits),
        folder=os.getcwd(),
        umask=umask(),
    )


class Undeploy(NamedTuple):
    """That a coordinator is only to un-deploy: its trials' context, as no file is to be believed, and how long it may take."""

    context: TrialContext
    seconds: float


class Coordinator:
    """One `python -m tuneoff.run.lifecycle` process and everything that descends from it."""

    def __init__(self, execution: Execution, results: Path, temporary: Path, undeploy: Undeploy | None = None) -> None:
        self._execution_id = execution.execution_id
        command = [interpreter(execution.spec), "-m", COORDINATOR, str(execution.folder)]
        marks = {MARK: execution.execution_id, RESULTS_MARK: str(results.resolve()), **import_path(), **as_parent()}
        marks |= seeing(execution.spec.experiment.workers.devices)
        environment = fresh_environment(execution.spec.experiment.workers.threads, temporary, PYTHONUNBUFFERED="1", **marks)
        environment.pop(_COMPILES_ANEW, None)
        self._not_adopted = set(children(os.getpid()))
        with contextlib.ExitStack() as opened:
            stdin: IO[str] | int = subprocess.DEVNULL
            if undeploy is not None:  # what it is to do comes from here: the files of the folder may be anybody's
                command.append(f"--undeploy={undeploy.seconds:g}")
                stdin = opened.enter_context(open(os.memfd_create("undeploy"), "w+"))
                json.dump({**stored(execution), "trial_context": undeploy.context.to_json()}, stdin)
                stdin.seek(0)
            log = opened.enter_context(open(open_to_change(execution.folder / LOG, os.O_WRONLY | os.O_APPEND), "ab"))
            self._process = subprocess.Popen(
                command, stdin=stdin, stdout=log, stderr=log, start_new_session=True, env=environment
            )
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)

    def wait(self, seconds: float) -> int | None:
        """Return the exit code if the process ends within `seconds`, else None.

        While it lives it adopts what the run orphans: what this process has been left by then is of somebody else.
        """
        select.select([self._pidfd], [], [], max(0.0, seconds))
        seen = children(os.getpid())
        code = self._process.poll()
        if code is None:
            self._not_adopted.update(seen)
        return code

    def kill_all(self) -> list[int]:
        """SIGKILL the coordinator and every other process of the run."""
        killed = end_all(lambda: [*([self.pid] if self._process.poll() is None else []), *self.descendants()])
        self._process.wait()
        return killed

    def descendants(self) -> list[int]:
        """Return the living processes of the run but the coordinator itself, whatever they did to their environment and session.

        The coordinator adopts those that lose their parent, and what it leaves this process adopts, if it is a subreaper: a child
        in another session that is new since the last `wait`, for what this process itself starts meanwhile is in its own.
        """
        marked = {*with_mark(MARK, self._execution_id), *in_session(self.pid)}
        new = [pid for pid in children(os.getpid()) if pid not in self._not_adopted]
        adopted = {pid for pid in new if session_of(pid) not in (0, os.getsid(0))}
        below = {child for pid in {self.pid, *adopted} for child in descendants(pid)}
        return sorted(pid for pid in {*marked, *adopted, *below} - {self.pid} if is_alive(pid))

    def survivors(self, grace_seconds: float) -> list[int]:
        """Return the processes that outlive the coordinator by more than `grace_seconds`."""
        deadline = time.monotonic() + grace_seconds
        while (living := self.descendants()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return living

    def close(self) -> None:
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def import_path() -> dict[str, str]:
    """Let children import what this process can: the current folder only where the registry put it on the path for a plugin
    that is not installed, never by chance (a folder named like a package would shadow it)."""
    folder = os.getcwd()
    paths = [folder] if folder in sys.path else []
    paths += [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(paths)}


def undeploy_outside(results: Path, specs: Mapping[str, RunSpec], within_seconds: float) -> list[str]:
    """Un-deploy each execution with something outside, in fresh processes; return one line on each that may still have it.

    `specs`: the specifications, by run id, that the command was given: what is un-deployed, and how, is theirs, never the
    folder's. To be called when no process of the results folder is left.
    """
    deadline = time.monotonic() + within_seconds
    leftovers = []
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
                execution = Execution(spec=spec, execution_id=folder.name, folder=folder)
                undeploy = Undeploy(trial_context(execution), max(1.0, seconds - START_SECONDS))
                with tempfile.TemporaryDirectory(prefix="tuneoff-", ignore_cleanup_errors=True) as temporary:  # in no record
                    undeploy_in_fresh_process(execution, results, Path(temporary), undeploy, seconds)
            except OSError as error:  # a file of the folder is in the way or of somebody else, or the disk is full
                log.warning("%s is not un-deployed: %s; run what its %s says", folder, error, OUTSIDE)
        leftovers += left_outside(folder)
    return leftovers


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
        with pinned(folder) as path:
            odd = next(odd_entries(path, besides=FRAMEWORK), None)
            return None if odd is None else f"{odd[0].relative_to(path)} is {odd[1]}"
    except OSError as error:
        return str(error.strerror)


def undeploy_in_fresh_process(
    execution: Execution, results: Path, temporary: Path, undeploy: Undeploy, within_seconds: float
) -> bool:
    """Un-deploy an execution; False: that did not end in time, and was killed."""
    fresh = Coordinator(execution, results, temporary, undeploy)
    try:
        has_ended = fresh.wait(within_seconds) is not None
        fresh.kill_all()
    finally:
        fresh.close()
    return has_ended
