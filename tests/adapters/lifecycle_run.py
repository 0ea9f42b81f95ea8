"""Run one adapter's whole lifecycle in its own coordinator process, without the supervisor, and read back its events."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from builders.specs import TOY, toy_spec
from tuneoff.base.layout import SPEC, TRIAL_CONTEXT
from tuneoff.base.process_limits import thread_environment
from tuneoff.base.processes import MARK
from tuneoff.base.targets import load_target
from tuneoff.experiment.spec import (
    Budget,
    Objective,
    Workers,
    WorkloadSpec,
)
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Event, TrialEnded, TrialSubmitted
from tuneoff.run.supervisor.execution import new_execution, write_inputs

TESTS = Path(__file__).parent.parent
_E = TypeVar("_E", bound=Event)


class LifecycleRun(NamedTuple):
    """The coordinator's exit code, all events in order of time, and the folders that it worked in."""

    exit_code: int
    events: list[Event]
    folder: Path
    log: str
    left_in_temporary: list[str]  # names that the run left in its TMPDIR
    left_in_home: list[str]  # ... and in its HOME, which was empty before

    def of(self, kind: type[_E]) -> list[_E]:
        """Return the events of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def configurations(self) -> dict[str, dict[str, Any]]:
        """The configuration of each submitted trial."""
        return {event.trial: event.configuration for event in self.of(TrialSubmitted)}

    @property
    def ends(self) -> dict[tuple[str, int], str]:
        """(trial id, attempt) -> how it said that it ended; an attempt whose process died says nothing."""
        return {(event.trial, event.attempt): event.state for event in self.of(TrialEnded)}


@dataclass
class RunningLifecycle:
    """A coordinator that was started: wait for it, or interrupt it as the supervisor does (SIGTERM)."""

    process: subprocess.Popen[bytes]
    folder: Path
    home: Path
    temporary: Path

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout_seconds: float) -> LifecycleRun:
        """Wait for the end and read the events; a run that takes longer is killed with its session and raises."""
        try:
            code = self.process.wait(timeout_seconds)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            left = sorted(path.name for path in self.temporary.iterdir())
            shutil.rmtree(self.temporary)
        return LifecycleRun(
            exit_code=code,
            events=[event for _, event in EventLog(self.folder / "events").merged()],
            folder=self.folder,
            log=(self.folder / "log.txt").read_text(),
            left_in_temporary=left,
            left_in_home=sorted(path.name for path in self.home.iterdir()),
        )


def start_lifecycle(
    tmp_path: Path,
    adapter_target: str,
    *,
    workload: str = TOY.target,
    workload_options: Mapping[str, Any] | None = None,
    trials: int = 4,
    epochs: int = 3,
    workers: int = 2,
    wall_clock_seconds: float | None = None,
    epochs_total: int | None = None,
    environment: Mapping[str, str] | None = None,
    **arguments: Any,
) -> RunningLifecycle:
    """Start `python -m tuneoff.run.lifecycle` on a new folder under `tmp_path`, in its own session, TMPDIR and HOME.

    `arguments` are those of `toy_spec`.
    """
    workload_class = load_target(workload)
    metric = workload_class.default_metric
    spec = toy_spec(
        "under-test",
        target=adapter_target,
        workload=WorkloadSpec(name=workload_class.name, target=workload, options=dict(workload_options or {})),
        objective=Objective(metric=metric, mode=workload_class.metrics[metric]),
        budget=Budget(trials=trials, epochs_per_trial=epochs, epochs_total=epochs_total, wall_clock_seconds=wall_clock_seconds),
        workers=Workers(count=workers),
        **arguments,
    )
    execution = new_execution(spec, tmp_path)
    write_inputs(execution)
    home = execution.folder.parent / f"{execution.folder.name}-home"
    home.mkdir()
    temporary = Path(tempfile.mkdtemp(prefix="tl"))  # a short path: sockets allow 107 bytes
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    with (execution.folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tuneoff.run.lifecycle", str(execution.folder)],
            env={
                **os.environ,
                **thread_environment(1),
                MARK: execution.execution_id,
                "TMPDIR": str(temporary),
                "HOME": str(home),
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONDONTWRITEBYTECODE": "1",
                **(environment or {}),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return RunningLifecycle(process, execution.folder, home, temporary)


def run_lifecycle(tmp_path: Path, adapter_target: str, *, timeout_seconds: float = 120.0, **arguments: Any) -> LifecycleRun:
    """Run a lifecycle to its end; `arguments` are those of `start_lifecycle`.

    Raises:
        subprocess.TimeoutExpired: it took longer than `timeout_seconds`; its session was killed.
    """
    return start_lifecycle(tmp_path, adapter_target, **arguments).wait(timeout_seconds)


def undeploy_afresh(folder: Path) -> None:
    """Un-deploy a run in a fresh process, told what to un-deploy as the supervisor tells it."""
    request = json.loads((folder / SPEC).read_text()) | {"trial_context": json.loads((folder / TRIAL_CONTEXT).read_text())}
    command = [sys.executable, "-m", "tuneoff.run.lifecycle", str(folder), "--undeploy=20"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False, timeout=30.0)
    assert done.returncode == 0, done.stderr
