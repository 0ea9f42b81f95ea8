"""Supervise one run from its start to its end, in a temporary folder with a short path."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneoff.base import clock
from tuneoff.base.layout import EVENTS, LOG, RUNS
from tuneoff.base.private_folder import PrivateFolder
from tuneoff.base.processes import COORDINATOR, command_line, kill, last_words, process_text, stat_fields
from tuneoff.base.targets import load_target
from tuneoff.errors import InfrastructureError, PluginError
from tuneoff.experiment.accounting.declared import NO_ACCOUNTING, Accounting, write_accounting
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.measure.power.metering import NO_POWER, PowerPlan
from tuneoff.measure.power.sampler import COLLECT_SECONDS, Sampler
from tuneoff.record.endings import Ruling
from tuneoff.record.events.schema import Charged
from tuneoff.record.events.tail import Tail
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.results_folder import note_begun
from tuneoff.record.run_context import remember
from tuneoff.run.lifecycle import DONE, FAILED, INTERRUPTED, INTERRUPTED_SECONDS, UNCAUGHT
from tuneoff.run.progress import Listener, Tracker
from tuneoff.run.supervisor.execution import (
    Coordinator,
    Execution,
    Undeploy,
    new_execution,
    undeploy_in_fresh_process,
    write_inputs,
)
from tuneoff.run.supervisor.leftovers import RunMemory, clean_execution
from tuneoff.run.supervisor.limits import OVER_SHARE, limit_workers
from tuneoff.run.supervisor.logs import Logs
from tuneoff.run.supervisor.watch import TrialWatch

LONGEST_BYTES = 39  # of a folder that leaves room for `/ray/session_<time and pid>/sockets/plasma_store`
_PLAIN = re.compile(r"[0-9A-Za-z/._-]+")  # of a path that every program takes: libpq cuts at commas, Redis reads escapes
POLL_SECONDS = 0.1
_TRIES = 10  # names of a temporary folder
INTERRUPTED_COLLECT_SECONDS = 2.0  # for a power database that is asked after the run
# deploy: whatever starts slowly does so by the machine, the network or a queue
_CHARGED_WHEN_LATE: Mapping[str, Charged] = {"deploy": "infrastructure", "trial": "workload", "test": "workload"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run to be executed once.

    `interrupt` may be set at any time (by a signal handler): the run un-deploys and ends as `interrupted`. `flags` (name, text)
    go into the record; `flags_after` is asked for more when the run has ended. `accounting`: what the run is charged, stored in
    its folder at once. `power`: how it is sampled, from before its first process to after its last one. `processors`: held for
    its slots, where `workers.cpu_limit` is affinity.
    """

    spec: RunSpec
    results: Path
    listener: Listener = field(default_factory=Listener)
    interrupt: threading.Event = field(default_factory=threading.Event)
    flags: Sequence[tuple[str, str]] = ()
    flags_after: Callable[[], Sequence[tuple[str, str]]] = tuple
    accounting: Accounting = NO_ACCOUNTING
    power: PowerPlan = NO_POWER
    processors: Sequence[int] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervised:
    """How an execution ended, as its supervisor saw it; `ruling` is None where the events alone tell it."""

    execution: Execution
    ruling: Ruling | None
    limits: Mapping[str, Any]  # what was in force


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stop:
    """Why the supervisor ends a run before its own end, and how long it may take to end."""

    ruling: Ruling
    end_seconds: float = 15.0  # from SIGTERM to SIGKILL
    undeploy_seconds: float = 15.0  # for un-deploy in a fresh process, should the first be killed
    exit_seconds: float = 3.0  # for processes that end by themselves once their coordinator is gone


_AT_ITS_OWN_END = _Stop(ruling=Ruling(status="done"))
_INTERRUPTED = _Stop(  # together well below 15 s
    ruling=Ruling(status="interrupted", reason="interrupted by the user", charged="user"),
    end_seconds=INTERRUPTED_SECONDS,
    undeploy_seconds=4.0,
    exit_seconds=1.0,
)


def supervise(request: RunRequest) -> Supervised:
    """Run one execution and return how it ended; nothing of it is left afterwards.

    Raises:
        ResultsError: the folder's list of executions cannot be written.
        UnsupportedError: a limit that `workers.cpu_limit` asks for cannot be put in force.
    """
    spec, results = request.spec, request.results
    execution = new_execution(spec, results / RUNS)
    note_begun(results, spec.run_id, execution.execution_id)
    write_accounting(execution.folder, request.accounting)
    temporary = make_temporary_folder(execution)
    workers = limit_workers(execution, request.processors)
    context = write_inputs(execution, workers.slots)
    events = EventWriter(execution.folder, execution.execution_id, "supervisor")
    for name, text in (*request.flags, *workers.flags):
        events.flag(name, text)
    with (
        Sampler(execution.folder, execution.execution_id, request.power) as sampler,
        temporary,
        short_path(temporary.path) as short,
    ):
        supervision = _Supervision(request, execution, short, events, context)
        try:
            ruling = supervision.run()
        finally:  # first everything is ended and removed, then it is written down: the disk may be full
            leftovers = supervision.end_everything()
            temporary.remove()
            killed = workers.leave() if workers.leave is not None else 0
            leftovers += clean_execution(execution.folder)
            with contextlib.suppress(ChildProcessError):  # all `Popen` objects were waited for: collect what else has ended
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
        sampler.stop(INTERRUPTED_COLLECT_SECONDS if request.interrupt.is_set() else COLLECT_SECONDS)
    supervision.write_ends(leftovers)
    if killed:
        events.flag(OVER_SHARE, f"this copy had used up its share of the memory, and the kernel ended {killed} of its processes")
    for name, text in request.flags_after():
        events.flag(name, text)
    events.sync()
    events.close()
    limits = {**workers.in_force, "threads": context.threads, "trial_seconds": spec.experiment.timeouts.trial_seconds}
    return Supervised(execution=execution, ruling=ruling, limits=limits)


class _Supervision:
    def __init__(
        self, request: RunRequest, execution: Execution, temporary: Path, events: EventWriter, context: TrialContext
    ) -> None:
        self._request, self._execution, self._temporary = request, execution, temporary
        self._context, self._events = context, events
        self._tail = Tail(execution.folder / EVENTS)
        spec, now = execution.spec, clock.monotonic_ns()
        self._tracker = Tracker(experiment=spec.experiment, run_id=spec.run_id, step_started_ns=now)
        self._watch = TrialWatch(
            execution, events, context.memory_bytes, context.memory_cgroups, self._tracker, self._take_events
        )
        try:
            others: tuple[str, ...] = load_target(execution.spec.adapter_target).logs
        except PluginError:  # the coordinator tells it
            others = ()
        self._logs = Logs(execution.folder, temporary, others)
        self._memory = RunMemory(execution.execution_id)
        self._stop = _AT_ITS_OWN_END
        self._problems: list[str] = []
        self._coordinator = Coordinator(execution, request.results, temporary)

    def run(self) -> Ruling | None:
        """Return the ruling, or None where the events alone tell it."""
        asked_ns = 0
        while (code := self._coordinator.wait(POLL_SECONDS)) is None:
            self._look()
            now = clock.monotonic_ns()
            if self._stop is _AT_ITS_OWN_END:
                self._stop = self._reason_to_stop(now) or _AT_ITS_OWN_END
                if self._stop is not _AT_ITS_OWN_END:
                    asked_ns = now
                    self._write_stop(self._stop.ruling, cancels=True)
                    kill(self._coordinator.pid, signal.SIGTERM)  # it un-deploys and ends
            elif now - asked_ns > self._stop.end_seconds * clock.NANOSECONDS:
                self._coordinator.kill_all()
        self._take_events()
        ruling = self._ruling(code)  # before a fresh process un-deploys: the step is the one in which this one ended
        if ruling is not None and self._stop is _AT_ITS_OWN_END:
            self._write_stop(ruling, cancels=False)
        self._look()
        if not self._tracker.undeployed:
            self._coordinator.kill_all()
            seconds = self._stop.undeploy_seconds
            undeploy = Undeploy(self._context, seconds)
            if not undeploy_in_fresh_process(self._execution, self._request.results, self._temporary, undeploy, seconds):
                self._problems.append("un-deploy in a fresh process did not end in time and was killed")
            self._take_events()
        return ruling

    def _ruling(self, code: int) -> Ruling | None:
        if self._stop is not _AT_ITS_OWN_END:
            return self._stop.ruling
        if code == INTERRUPTED and self._tracker.undeploy_ended:
            reason = "the coordinator was terminated by another process"
            return Ruling(status="interrupted", reason=reason, charged="infrastructure")
        if code not in (DONE, FAILED) or not self._tracker.undeploy_ended:  # whatever its code, os._exit does not end the steps
            reason = f"the coordinator ended with exit code {code} in step {self._tracker.step}; see {LOG} in its folder"
            if words := last_words(self._execution.folder / LOG, otherwise=""):
                reason += f"; its last line: {words}"
            is_lost = code < 0 or code == UNCAUGHT or code in load_target(self._execution.spec.adapter_target).lost_codes
            charged: Charged = "infrastructure" if is_lost else "framework"
            return Ruling(status="failed", reason=reason, charged=charged)
        return None

    def _write_stop(self, ruling: Ruling, *, cancels: bool) -> None:
        """Note why the run ends before its own end: the trials that run end with it."""
        self._events.write("run_stopped", cause=ruling.reason, charged=ruling.charged, cancels=cancels)

    def end_everything(self) -> list[str]:
        """End what outlived the coordinator and return what had to be ended or is still there."""
        coordinator = self._coordinator
        self._memory.look(coordinator.descendants)
        leftovers = []
        for pid in coordinator.survivors(self._stop.exit_seconds):
            text, fields = f"process {pid}: {process_text(pid, COORDINATOR, 'the coordinator')}", stat_fields(pid)
            if fields is not None:  # else it has ended meanwhile
                began, steps = int(fields[19]) * clock.TICK_NS - clock.slept_ns(), {"start": 0, **self._tracker.steps}
                moments = (began, began + clock.TICK_NS)
                first, last = ([step for step, at in steps.items() if at <= moment][-1] for moment in moments)
                parent = int(fields[1])
                is_orphan = parent in (os.getpid(), coordinator.pid)
                whose = "its parent has ended" if is_orphan else f"its parent is process {parent}: {command_line(parent)}"
                text += f"; started in step {first if first == last else f'{first} to {last}'}; {whose}"
            leftovers.append(text)
        coordinator.kill_all()
        coordinator.close()
        leftovers += [f"shared memory /dev/shm/{name}" for name in self._memory.left()]
        return leftovers + self._problems

    def write_ends(self, leftovers: Sequence[str]) -> None:
        """Write the end of trials that nobody wrote, and flag what was left."""
        self._take_events()
        self._watch.bury_all()
        if (shortened := self._logs.shorten()) is not None:
            self._events.flag("log_shortened", shortened)
        for problem in leftovers:
            self._events.flag("left_behind", problem)
        for problem in self._tail.problems:
            self._events.flag("unreadable_event", problem)

    def _look(self) -> None:
        self._take_events()
        self._watch.look()
        self._memory.look(self._pids)
        self._logs.look()
        self._request.listener.run_progress(self._tracker.live(clock.monotonic_ns()))

    def _pids(self) -> list[int]:
        return [self._coordinator.pid, *self._coordinator.descendants()]

    def _take_events(self) -> None:
        for process, event in self._tail.poll():
            self._tracker.take(process, event)

    def _reason_to_stop(self, now: int) -> _Stop | None:
        if self._request.interrupt.is_set():
            return _INTERRUPTED
        tracker, experiment = self._tracker, self._execution.spec.experiment
        if (started_ns := tracker.step_started_ns) is not None:
            step = "deploy" if tracker.step == "start" else tracker.step
            name = {"trial": "trials_seconds"}.get(step, f"{step}_seconds")
            limit = float(getattr(experiment.timeouts, name))
            if now - started_ns > limit * clock.NANOSECONDS:
                reason = f"step {step} took longer than {limit:g} s"
                charged = _CHARGED_WHEN_LATE.get(step, "framework")
                return _Stop(ruling=Ruling(status="timeout", reason=reason, charged=charged))
        most, failed = experiment.failures.max_failed_trials, len(tracker.failed_for_good)
        if most is not None and failed > most:
            reason = f"{failed} trials failed, more than failures.max_failed_trials={most}"
            return _Stop(ruling=Ruling(status="failed", reason=reason, charged="workload"))
        return None


def make_temporary_folder(execution: Execution) -> PrivateFolder:
    """Make a folder below TMPDIR, remembered before it exists.

    Raises:
        InfrastructureError: something came to each of its names first.
    """
    for _ in range(_TRIES):
        path = Path(tempfile.gettempdir()) / f"tuneoff-{os.urandom(4).hex()}"
        remember(execution.folder, "folder", str(path))
        try:
            return PrivateFolder.make(path)
        except InfrastructureError as error:  # somebody else's, which is never removed
            taken = error
    raise taken


@contextlib.contextmanager
def short_path(folder: Path) -> Iterator[Path]:
    """Give a path to `folder` of at most `LONGEST_BYTES` and plain characters, its own if that is so, for this user's processes.

    Else it is the one that the kernel gives to a folder that this process has open: it is there as long as the block runs.
    """
    if len(os.fsencode(folder)) <= LONGEST_BYTES and _PLAIN.fullmatch(str(folder)):
        yield folder
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    finally:
        os.close(descriptor)
