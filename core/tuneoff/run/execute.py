"""Execute a plan: prepare the data, run what is not done, survive interruption, leave a resumable folder."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import Any

from tuneoff.base.files import current_folder_problem, read_json
from tuneoff.base.identity import canonical_json
from tuneoff.base.processes import become_subreaper
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.accounting.charge import of_run
from tuneoff.experiment.checked import checked_run_spec
from tuneoff.experiment.names import emulated_label, run_name, short_label
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.power.baseline import baseline_seconds
from tuneoff.measure.power.metering import PowerPlan
from tuneoff.measure.power.ready import HostPower
from tuneoff.record.derive import UNWRITABLE, Verdict
from tuneoff.record.execution_list import FILE_NAME as BEGUN
from tuneoff.record.execution_list import begun
from tuneoff.record.results_folder import PLAN, ResultsFolder, RunEnd, is_final, run_ends, standing
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import FILE_NAME as RUN_FILE
from tuneoff.record.store import REPEAT, read_runs
from tuneoff.registry import adapter_class
from tuneoff.run import machine
from tuneoff.run.finish import finish
from tuneoff.run.lifecycle.context import SPEC
from tuneoff.run.listener import Listener
from tuneoff.run.provenance import Provenance, prepare
from tuneoff.run.repeat import to_repeat
from tuneoff.run.resume.choose import to_continue
from tuneoff.run.supervisor.guardian import Guardian
from tuneoff.run.supervisor.leftovers import clean_results
from tuneoff.run.supervisor.limits import reserve_processors
from tuneoff.run.supervisor.prepare import is_named_for
from tuneoff.run.supervisor.processors import ReservedProcessors
from tuneoff.run.supervisor.remote_leftovers import undeploy_outside
from tuneoff.run.supervisor.run import supervise
from tuneoff.run.uncharged import uncharged_lines

log = logging.getLogger(__name__)

UNDEPLOY_SECONDS = 20.0  # for what earlier commands left outside this machine


def execute(
    plan: Plan,
    results: Path,
    *,
    listener: Listener,
    resume: bool = False,
    continues: bool = False,
    retry_flagged: bool = False,
) -> list[RunEnd]:
    """Run every run of `plan` that has no final result in `results`, and return what each planned run came to.

    `continues`: a run that was interrupted keeps its finished trials, where it has any; else it is repeated whole.
    `retry_flagged`: blocks that hold a run with a flag of the machine are repeated whole, and both are kept.

    SIGINT and SIGTERM un-deploy the current run within 15 s, mark it interrupted, and end the matrix; `resume` goes on.

    Raises:
        ResultsError: the folder cannot be used, or the current one cannot.
        ExperimentError: a power meter that the file names cannot be used; before any run starts.
        DataError: a workload's data is not there; before any run starts.
        UnsupportedError: an interrupted run's adapter cannot continue it, or `workers.cpu_limit` cannot be put in force here;
            before any run starts.
    """
    if (problem := current_folder_problem()) is not None:
        raise ResultsError(problem)
    results = results.absolute()  # trial processes may run in another folder
    meters = HostPower(plan.power)
    try:
        with ReservedProcessors() as reserved:
            own = reserve_processors((run.spec for run in plan.to_run), reserved)
            with _kept_in_place(results):
                return _execute(
                    plan, results, listener, meters, own, resume=resume, continues=continues, retry_flagged=retry_flagged
                )
    finally:
        meters.close()


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


def _execute(
    plan: Plan,
    results: Path,
    listener: Listener,
    meters: HostPower,
    processors: Sequence[int],
    *,
    resume: bool,
    continues: bool,
    retry_flagged: bool,
) -> list[RunEnd]:
    with ResultsFolder(results, plan, resume=resume) as folder:
        killed = clean_results(results)
        if killed:
            log.warning("ended %d processes that an earlier command left behind", len(killed))
        for left in undeploy_outside(results, {run.run_id: run.spec for run in plan.runs}, UNDEPLOY_SECONDS):
            log.warning("an earlier command left, and it cannot be removed now: %s", left)
        _recover(results, plan, folder.earlier_end)
        interrupted = to_continue(plan, results) if continues else {}
        data = _prepare_data(plan)
        become_subreaper()
        guardian = Guardian(results, folder.lock, since=_begun(results))
        try:
            with _full_disk(folder), _interruptible() as interrupt:
                _run_all(plan, results, listener, interrupt, data, meters, interrupted, retry_flagged, processors)
                if not interrupt.is_set():
                    folder.finish()
        except BaseException:
            guardian.let_clean()  # a run may not have come to its own clean-up
            raise
        guardian.dismiss()
        return run_ends(results, plan)


def _run_all(
    plan: Plan,
    results: Path,
    listener: Listener,
    interrupt: threading.Event,
    data: dict[str, Provenance],
    meters: HostPower,
    interrupted: Mapping[str, Path],
    retry_flagged: bool,
    processors: Sequence[int],
) -> None:
    records = list(read_runs(results))
    known = standing(records)
    repeats = to_repeat(plan, records, flagged=retry_flagged)
    final = {run_id for run_id, record in known.items() if is_final(record)} - set(repeats)
    needed = {run.spec.adapter_target for run in plan.counted if run.skip_reason is None and run.run_id not in final}
    if repeats:
        final -= {run.run_id for run in plan.runs if run.spec.warm_up}  # a repeated block finds warm caches, as the first did
        for block in {repeat.block: repeat for repeat in repeats.values()}.values():
            listener.noted(f"repetition {block.number} of the whole block of {block.text}")
    guard = machine.Guard(results, machine.known(_looks(records)))
    is_first = True
    power = meters.plan
    for position, run in enumerate(plan.runs, 1):
        if interrupt.is_set():
            return
        if run.skip_reason is not None:
            listener.run_ended(position, len(plan.runs), _label(run), "skipped", run.skip_reason, 0.0)
            continue
        if run.run_id in final:
            status = known[run.run_id].status
            listener.run_ended(position, len(plan.runs), _label(run), status, "finished before this command", 0.0)
            continue
        if run.spec.warm_up and run.spec.adapter_target not in needed:
            continue
        if is_first:
            is_first = False
            idle = baseline_seconds(power)
            listener.noted(f"{power.line()}{f'; first its idle power is read for {idle:g} s' if idle else ''}")
            for lacking in uncharged_lines(plan, time.time_ns()):
                listener.noted(lacking)
            power = meters.prepare(interrupt, listener.noted)
        _check_place(results)
        workers = run.spec.experiment.workers
        state, notes = guard.look(round(workers.count * (workers.memory_mb or 0) * 1e6))
        if run.run_id in interrupted:
            listener.noted(f"{_label(run)} goes on with the finished trials of {interrupted[run.run_id].name}")
        listener.run_started(position, len(plan.runs), _label(run), run.run_id)
        started = time.monotonic()
        repeat = repeats.get(run.run_id)
        before = {"machine_before": state.to_json(), **({REPEAT: repeat.to_json()} if repeat is not None else {})}
        continued = interrupted.get(run.run_id) if repeat is None else None
        record = _run(run, results, listener, interrupt, before, notes, guard.after_run, plan, data, power, continued, processors)
        seconds = time.monotonic() - started
        listener.run_ended(position, len(plan.runs), _label(run, record.emulated), record.status, record.reason, seconds)


def _run(
    run: PlannedRun,
    results: Path,
    listener: Listener,
    interrupt: threading.Event,
    before: Mapping[str, Any],
    notes: Sequence[tuple[str, str]],
    notes_after: Callable[[], Sequence[tuple[str, str]]],
    plan: Plan,
    data: dict[str, Provenance],
    power: PowerPlan,
    continues: Path | None,
    processors: Sequence[int],
) -> RunRecord:
    adapter = adapter_class(run.spec.adapter)
    accounting = of_run(plan.accounting, adapter.capabilities)
    ended = supervise(run.spec, results, listener, interrupt, notes, accounting, power, continues, notes_after, processors)
    environment = {
        "limits": dict(ended.limits),
        **before,
        "analysis_digest": plan.analysis_digest,
        **data[_data_key(run.spec)].environment(),
    }
    return finish(ended.execution.folder, run.spec, ended.verdict, adapter, environment)


def _looks(records: Sequence[RunRecord]) -> list[Any]:
    """Return the machine's states before the executions of a results folder, in the order of time."""
    return [record.environment.get("machine_before") for record in sorted(records, key=lambda record: record.started_at or "~")]


def _begun(results: Path) -> int:
    """Return how many executions were begun by earlier commands."""
    try:
        return len(begun(results))
    except OSError as error:
        raise ResultsError(f"{results / BEGUN} cannot be read: {error.strerror}; remove it") from error


def _recover(results: Path, plan: Plan, verdict: Verdict) -> None:
    """Write the record of the plan's executions that have none: their finished trials are kept, their status is interrupted."""
    planned = {run.run_id: run.spec for run in plan.runs}
    for spec_file in sorted(results.glob(f"runs/*/*/{SPEC}")):
        folder = spec_file.parent
        if (folder / RUN_FILE).exists():
            continue
        try:
            spec = planned.get(folder.parent.name)
            if spec is None or not is_named_for(spec, folder):
                raise ResultsError("it is no execution of a run that is planned here; remove the folder")
            had = checked_run_spec(read_json(spec_file)["run"])
            # of the folder's word only the timeouts: they are no part of the id, and may have changed in the plan since
            if not all(0 < seconds < math.inf for seconds in asdict(had.experiment.timeouts).values()):
                raise ResultsError("a timeout is not a positive number; remove the folder")
            spec = replace(spec, experiment=replace(spec.experiment, timeouts=had.experiment.timeouts))
            finish(folder, spec, verdict, adapter_class(spec.adapter))
        except (OSError, ValueError, KeyError, TypeError, TuneoffError) as error:
            # killed while it was being made, or made by a plugin that is gone: the folder stays as it is
            log.warning("%s has no record and none can be derived: %s", folder, error)


def _prepare_data(plan: Plan) -> dict[str, Provenance]:
    """Make each workload's data available, once, and return what it declares by workload and options."""
    found: dict[str, Provenance] = {}
    for run in plan.to_run:
        key = _data_key(run.spec)
        if key not in found:
            found[key] = prepare(run.spec.experiment.workload)
    return found


def _data_key(spec: RunSpec) -> str:
    workload = spec.experiment.workload
    return canonical_json([workload.target, dict(workload.options)])


def _label(run: PlannedRun, emulated: bool = False) -> str:
    label = short_label(run.label, run.spec.adapter)
    return run_name(emulated_label(label, run.spec) if emulated else label, run.spec)


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


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn SIGINT, SIGTERM and SIGHUP into an event while the block runs; only the main thread may set handlers.

    Under `nohup`, which has SIGHUP ignored, the terminal's end is none of the matrix.
    """
    interrupt = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        interrupt.set()

    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    numbers = (signal.SIGINT, signal.SIGTERM, *hang_up)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield interrupt
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
