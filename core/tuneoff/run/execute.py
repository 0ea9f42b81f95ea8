"""Execute a plan: prepare the data, run what is not done, survive interruption, leave a resumable folder."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tuneoff.base.current_folder import current_folder_problem
from tuneoff.base.format import counted
from tuneoff.base.identity import canonical_json
from tuneoff.base.interrupting import asked_to_end
from tuneoff.base.json_values import plain, values
from tuneoff.base.layout import BEGUN, END, LOG, PLAN, RUNS
from tuneoff.base.processes import become_subreaper
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import of_run
from tuneoff.experiment.names import run_name, short_label
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.power_settings import NO_METER
from tuneoff.experiment.spec import EnvironmentSpec, RunSpec
from tuneoff.measure.power.metering import HostPower, PowerPlan, baseline_seconds
from tuneoff.measure.stored import read_runs
from tuneoff.record.endings import NO_SUPERVISOR, UNWRITABLE
from tuneoff.record.flag_meanings import SERIOUS
from tuneoff.record.results_folder import ResultsFolder, begun
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.record.store import REPEAT, is_final, selected_executions
from tuneoff.registry import adapter_class
from tuneoff.run import machine
from tuneoff.run.environments import ready
from tuneoff.run.finish import finish, recover
from tuneoff.run.progress import Listener
from tuneoff.run.provenance import Provenance, prepare
from tuneoff.run.repeats import Repeat, of_blocks, to_repeat
from tuneoff.run.run_ends import RunEnd, run_ends
from tuneoff.run.supervisor.copies import supervise_copies
from tuneoff.run.supervisor.execution import Execution, new_execution, undeploy_outside, write_spec
from tuneoff.run.supervisor.guardian import Guardian
from tuneoff.run.supervisor.leftovers import clean_results
from tuneoff.run.supervisor.limits import ReservedProcessors, is_all_here, reserve_processors
from tuneoff.run.supervisor.logs import shorten
from tuneoff.run.supervisor.run import RunRequest, Supervised, supervise
from tuneoff.run.uncharged import uncharged_lines

log = logging.getLogger(__name__)

CUT = "interrupted"
NOT_REPEATED = "it was to be repeated, and the command ended before; the earlier execution stands"
UNDEPLOY_SECONDS = 20.0  # for what earlier commands left outside this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A plan to be executed into a results folder.

    `retry`: blocks that hold a run with a flag of the machine are repeated whole, or the runs that failed; both are kept.
    `maxfail`: how many failed runs of this command end it.
    """

    plan: Plan
    results: Path
    listener: Listener = field(default_factory=Listener)
    resume: bool = False
    retry: Literal["flagged", "failed"] | None = None
    maxfail: int | None = None
    notes: Callable[[Sequence[PlannedRun]], Sequence[str]] = lambda runs: ()  # of the runs that are left, told before the first
    offline: bool = False  # make no environment
    verbose: bool = False  # tell which power meter was found, though nothing is wrong with it


def execute(request: PlanRequest) -> list[RunEnd]:
    """Run every run of the plan that has no final result in the folder, and return what each planned run came to.

    SIGINT and SIGTERM un-deploy the current run within 15 s, mark it interrupted, and end the matrix; `resume` goes on.

    Raises:
        ResultsError: the folder cannot be used, or the current one cannot.
        ExperimentError: a power meter that the file names cannot be used; before any run starts.
        DataError: a workload's data is not there; before any run starts.
        MissingPackageError: an environment cannot be made; before any run starts.
        UnsupportedError: `workers.cpu_limit` cannot be put in force here; before any run starts.
    """
    if (problem := current_folder_problem()) is not None:
        raise ResultsError(problem)
    request = replace(request, results=request.results.absolute())  # trial processes may run in another folder
    plan, results = request.plan, request.results
    with contextlib.closing(HostPower(plan.power)) as meters, ReservedProcessors() as reserved:
        processors = reserve_processors((run.spec for run in plan.to_run), reserved)
        with _kept_in_place(results), ResultsFolder(results, plan, resume=request.resume) as folder:
            if killed := clean_results(results.resolve()):  # what an earlier command left behind
                log.warning("ended %d processes left by an earlier command", len(killed))
            for leftover in undeploy_outside(results, {run.run_id: run.spec for run in plan.runs}, UNDEPLOY_SECONDS):
                log.warning("an earlier command left, and it cannot be removed now: %s", leftover)
            recover(results, plan, folder.earlier_end)
            matrix = _Matrix(request, meters, processors)
            become_subreaper()
            specs = [run.spec for run in matrix.left]
            with (
                ready(specs, request.listener.noted, offline=request.offline),
                Guardian(results, folder.lock, since=_begun(results)),
                _full_disk(folder),
                asked_to_end() as interrupt,
            ):
                if matrix.run_all(interrupt) and not interrupt.is_set():
                    folder.finish()
            ends = run_ends(results, plan)
            status = CUT if interrupt.is_set() else "planned"
            return [replace(end, status=status, reason=NOT_REPEATED) if end.run_id in matrix.owed else end for end in ends]


class _Matrix:
    """The runs of a plan, one after the other; its making makes the data of those that are left available.

    Raises:
        DataError: a workload's data is not there.
    """

    def __init__(self, request: PlanRequest, meters: HostPower, processors: Sequence[int]) -> None:
        plan, results = request.plan, request.results
        self._request, self._meters, self._processors = request, meters, processors
        records = list(read_runs(results))
        self._selected = selected_executions(records)
        self._repeats = to_repeat(plan, records, flagged=request.retry == "flagged")
        again = FAILED if request.retry == "failed" else ()
        self._final = _final(
            plan, {key: record for key, record in self._selected.items() if record.status not in again}, self._repeats
        )
        needed = {_runner(run) for run in plan.counted if run.skip_reason is None and run.run_id not in self._final}
        is_asked = [run for run in plan.to_run if not run.spec.warm_up or _runner(run) in needed]
        unfinished = {run.spec.shared_key for run in is_asked if run.run_id not in self._final}
        self.left = [run for run in is_asked if run.spec.shared_key in unfinished]  # of copies all, which run at the same time
        final = {key for key, record in self._selected.items() if is_final(record)}
        self.owed = final & {run.run_id for run in self.left}  # those to be repeated, until they are
        self._data: dict[str, Provenance] = {}  # by workload and options
        for run in self.left:
            if (key := _data_key(run.spec)) not in self._data:
                self._data[key] = prepare(run.spec.experiment.workload)
        in_time = sorted(records, key=lambda record: record.started_at or "~")
        looks = machine.stored_states(record.environment.get("machine_before") for record in in_time)
        self._guard = machine.Guard(results, looks)
        self._power: PowerPlan | None = None  # ready from the first run on
        self._told: set[tuple[str, str]] = set()  # serious flags by label
        self._failed = 0

    def run_all(self, interrupt: threading.Event) -> bool:
        """Run what is left, until the command is interrupted or too many runs failed; tell whether it came to the end."""
        plan, listener = self._request.plan, self._request.listener
        for block in of_blocks(self._repeats):
            listener.noted(f"repetition {block.number} of the whole block of {block.text}")
        for note in self._request.notes(self.left) if self.left else ():
            listener.noted(note)
        others = [run for run in plan.runs if run.skip_reason is not None or run.run_id in self._final]
        for run in others:
            status = "skipped" if run.skip_reason is not None else self._selected[run.run_id].status
            listener.run_ended(0, 0, _label(run), status, run.skip_reason, 0.0)
        if others:
            reasons = Counter("the same as others" if run.same_as else run.skip_reason for run in others)
            before = reasons.pop(None, 0)  # those without one ended in an earlier command
            parts = [f"{counted(before, 'run')} finished before this command"] if before else []
            listener.noted("; ".join([*parts, *(f"{counted(n, 'run')} skipped: {reason}" for reason, n in reasons.items())]))
        listener.begun([run.run_id for run in self.left])
        position = 1
        for _, together in itertools.groupby(self.left, lambda run: run.spec.shared_key):
            if interrupt.is_set() or (self._request.maxfail is not None and self._failed >= self._request.maxfail):
                return False
            runs = list(together)
            self._run(runs, position, interrupt)
            position += len(runs)
        return True

    def _run(self, runs: Sequence[PlannedRun], position: int, interrupt: threading.Event) -> None:
        """Execute one run, or all copies of a job at the same time, and write their records."""
        results, listener, total, (run, *_) = self._request.results, self._request.listener, len(self.left), runs
        if self._power is None:
            power = self._meters.plan
            idle = baseline_seconds(power)
            if self._request.verbose or idle or (power.meter is None and self._request.plan.power.meter != NO_METER):
                listener.noted(f"{power.line()}{f'; first its idle power is read for {idle:g} s' if idle else ''}")
            for lacking in uncharged_lines(self._request.plan, time.time_ns()):
                listener.noted(lacking)
            self._power = self._meters.prepare(interrupt, listener.noted)
        _check_place(results)
        workers = run.spec.experiment.workers
        memory_mb = (workers.memory_mb or 0) if is_all_here(run.spec) else 0
        state, flags = self._guard.look(round(len(runs) * workers.count * memory_mb * 1e6))
        if position == 1 and is_all_here(run.spec) and (busy := machine.busy_text(state)) is not None:
            listener.noted(busy)
        for number, copy in reversed([*enumerate(runs)]):  # the last is shown: of copies the first, whose progress is told
            listener.run_started(position + number, total, _label(copy), copy.run_id)
        started = time.monotonic()
        slots = workers.count * int(workers.cpus) if self._processors else 0
        requests = [
            RunRequest(
                spec=copy.spec,
                results=results,
                listener=listener,
                interrupt=interrupt,
                flags=flags,
                flags_after=self._guard.after_run,
                accounting=of_run(
                    self._request.plan.accounting, adapter_class(copy.spec.adapter).capabilities_on(copy.spec.platform)
                ),
                power=self._power,
                processors=self._processors[number * slots :],
            )
            for number, copy in enumerate(runs)
        ]
        repeat = next((self._repeats[copy.run_id] for copy in runs if copy.run_id in self._repeats), None)
        before = {
            "machine_before": plain(state),
            **({REPEAT: values(repeat, ("number", "because"))} if repeat is not None else {}),
        }
        ends = [supervise(requests[0])] if len(runs) == 1 else supervise_copies(requests, self._request.plan.power)
        seconds = time.monotonic() - started
        for number, (copy, end) in enumerate(zip(runs, ends, strict=bool(ends))):
            record = self._finished(copy.spec, end or self._unsupervised(copy.spec), before)
            listener.run_ended(position + number, total, _label(copy), record.status, record.reason, seconds)
            if record.status != CUT:
                self.owed -= {copy.run_id}
            self._failed += record.status in FAILED and not copy.spec.warm_up
            for flag in record.flags:
                if flag.name in SERIOUS and (copy.label, flag.name) not in self._told:
                    self._told.add((copy.label, flag.name))
                    listener.noted(f"! {_label(copy)}: {flag.name}: {flag.text}")

    def _unsupervised(self, spec: RunSpec) -> Supervised:
        """Clean up after a copy whose supervisor was killed, which may have begun no execution yet."""
        results = self._request.results
        clean_results(results.resolve())
        begun = [path for path in (results / RUNS / spec.run_id).glob("*/") if not (path / END).exists()]
        execution = (
            Execution(spec=spec, execution_id=begun[0].name, folder=begun[0]) if begun else new_execution(spec, results / RUNS)
        )
        write_spec(execution)
        shorten(execution.folder / LOG)
        return Supervised(execution=execution, ruling=NO_SUPERVISOR, limits={})

    def _finished(self, spec: RunSpec, ended: Supervised, before: Mapping[str, Any]) -> RunRecord:
        """Return the record of a run that has ended; `before`: what was known of its environment."""
        environment = {
            "limits": dict(ended.limits),
            **before,
            "analysis_digest": self._request.plan.analysis_digest,
            **self._data[_data_key(spec)].environment(),
        }
        return finish(ended.execution.folder, spec, ended.ruling, adapter_class(spec.adapter), environment)


@contextlib.contextmanager
def _kept_in_place(results: Path) -> Iterator[None]:
    """Say so where a file is missing because the whole folder is."""
    try:
        yield
    except FileNotFoundError:
        _check_place(results)
        raise


def _check_place(results: Path) -> None:
    """Raise ResultsError where the folder was removed or renamed by somebody else: the next run would make it anew."""
    if not (results / PLAN).exists():
        raise ResultsError(f"{results} must stay where it is while its runs go on, but it was removed or renamed")


def _begun(results: Path) -> int:
    """Return how many executions were begun by earlier commands."""
    try:
        return len(begun(results))
    except OSError as error:
        raise ResultsError(f"{results / BEGUN} cannot be read: {error.strerror}; remove it") from error


def _final(plan: Plan, records: Mapping[str, RunRecord], repeats: Mapping[str, Repeat]) -> set[str]:
    """Return the ids of the runs that are left alone; a repeated block finds warm caches, as the first did."""
    final = {run_id for run_id, record in records.items() if is_final(record)} - set(repeats)
    return final - {run.run_id for run in plan.runs if run.spec.warm_up} if repeats else final


def _runner(run: PlannedRun) -> tuple[str, EnvironmentSpec | None]:
    """Return what a warm-up warms up: the adapter's code, in its environment."""
    return run.spec.adapter_target, run.spec.environment


def _data_key(spec: RunSpec) -> str:
    workload = spec.experiment.workload
    return canonical_json([workload.target, dict(workload.options)])


def _label(run: PlannedRun) -> str:
    return run_name(short_label(run.label, run.spec.adapter), run.spec)


@contextlib.contextmanager
def _full_disk(folder: ResultsFolder) -> Iterator[None]:
    """Name a disk that is full or read-only in one line; what was written before stays and can be resumed."""
    try:
        yield
    except (OSError, ResultsError) as error:
        cause = error.__cause__ if isinstance(error, ResultsError) else error
        if not isinstance(cause, OSError) or cause.errno not in (*UNWRITABLE, errno.ELOOP, errno.ENOTDIR):
            raise
        folder.note_unwritable(cause.errno)
        if isinstance(error, ResultsError):
            raise
        problem = f"{cause.strerror} ({cause.filename or folder.path})"
        raise ResultsError(f"{folder.path} cannot be written: {problem}; free space and add --resume") from error
