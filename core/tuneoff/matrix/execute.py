"""Execute a plan: prepare the data, run what is not done, survive interruption, leave a resumable folder."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tuneoff.accounting.charge import of_run
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.checked import checked_run_spec
from tuneoff.experiment.identity import canonical_json
from tuneoff.experiment.names import emulated_label, run_name, short_label
from tuneoff.experiment.spec import RunSpec
from tuneoff.files import read_regular_text
from tuneoff.lifecycle.context import SPEC
from tuneoff.matrix import machine
from tuneoff.matrix.finish import finish
from tuneoff.matrix.folder import ResultsFolder, RunEnd, is_final, run_ends, standing
from tuneoff.matrix.listener import Listener
from tuneoff.matrix.plan import Plan, PlannedRun
from tuneoff.matrix.provenance import Provenance, prepare
from tuneoff.matrix.repeat import to_repeat
from tuneoff.matrix.uncharged import uncharged_lines
from tuneoff.power.baseline import baseline_seconds
from tuneoff.power.plan import PowerPlan
from tuneoff.power.ready import HostPower
from tuneoff.records.derive import KILLED
from tuneoff.records.model import RunRecord
from tuneoff.records.store import FILE_NAME as RUN_FILE
from tuneoff.records.store import REPEAT, read_runs
from tuneoff.registry import adapter_class
from tuneoff.resume.choose import to_continue
from tuneoff.supervisor.guardian import Guardian
from tuneoff.supervisor.leftovers import clean_results
from tuneoff.supervisor.outside import undeploy_outside
from tuneoff.supervisor.processes import become_subreaper
from tuneoff.supervisor.run import supervise

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
    `retry_flagged`: blocks that hold a run which the machine guard flagged are repeated whole, and both are kept.

    SIGINT and SIGTERM un-deploy the current run within 15 s, mark it interrupted, and end the matrix; `resume` goes on.

    Raises:
        ResultsError: the folder cannot be used.
        ExperimentError: a power meter that the file names cannot be used; before any run starts.
        DataError: a workload's data is not there; before any run starts.
        UnsupportedError: an interrupted run's adapter cannot continue it; before any run starts.
    """
    results = results.absolute()  # trial processes may run in another folder
    meters = HostPower(plan.power)
    try:
        return _execute(plan, results, listener, meters, resume=resume, continues=continues, retry_flagged=retry_flagged)
    finally:
        meters.close()


def _execute(
    plan: Plan,
    results: Path,
    listener: Listener,
    meters: HostPower,
    *,
    resume: bool,
    continues: bool,
    retry_flagged: bool,
) -> list[RunEnd]:
    with ResultsFolder(results, plan, resume=resume) as folder:
        killed = clean_results(results)
        if killed:
            log.warning("ended %d processes that an earlier command left behind", len(killed))
        for left in undeploy_outside(results, UNDEPLOY_SECONDS):
            log.warning("an earlier command left, and it cannot be removed now: %s", left)
        _recover(results)
        interrupted = to_continue(plan, results) if continues else {}
        data = _prepare_data(plan)
        become_subreaper()
        guardian = Guardian(results, folder.lock)
        try:
            with _full_disk(results), _interruptible() as interrupt:
                _run_all(plan, results, listener, interrupt, data, meters, interrupted, retry_flagged)
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
    guard = machine.Guard(results, machine.reference(_looks(records)))
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
        workers = run.spec.experiment.workers
        state, notes = guard.look(round(workers.count * (workers.memory_mb or 0) * 1e6))
        if run.run_id in interrupted:
            listener.noted(f"{_label(run)} goes on with the finished trials of {interrupted[run.run_id].name}")
        listener.run_started(position, len(plan.runs), _label(run), run.run_id)
        started = time.monotonic()
        repeat = repeats.get(run.run_id)
        before = {"machine_before": state.to_json(), **({REPEAT: repeat.to_json()} if repeat is not None else {})}
        continued = interrupted.get(run.run_id) if repeat is None else None
        record = _run(run, results, listener, interrupt, before, notes, guard.after_run, plan, data, power, continued)
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
) -> RunRecord:
    adapter = adapter_class(run.spec.adapter)
    accounting = of_run(plan.accounting, adapter.capabilities)
    ended = supervise(run.spec, results, listener, interrupt, notes, accounting, power, continues, notes_after)
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


def _recover(results: Path) -> None:
    """Write the record of executions whose command was killed: their finished trials are kept, their status is interrupted."""
    for spec_file in sorted(results.glob(f"runs/*/*/{SPEC}")):
        folder = spec_file.parent
        if (folder / RUN_FILE).exists():
            continue
        try:
            spec = checked_run_spec(json.loads(read_regular_text(spec_file))["run"])
            finish(folder, spec, KILLED, adapter_class(spec.adapter))
        except (ValueError, KeyError, TypeError, TuneoffError) as error:
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
def _full_disk(results: Path) -> Iterator[None]:
    """Name a disk that is full or read-only in one line; what was written before stays and can be resumed."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        problem = f"{error.strerror} ({error.filename or results})"
        raise ResultsError(f"{results} cannot be written: {problem}; free space and add --resume") from error


@contextlib.contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn SIGINT, SIGTERM and SIGHUP into an event while the block runs; only the main thread may set handlers."""
    interrupt = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(signum: int, frame: FrameType | None) -> None:
        interrupt.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield interrupt
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
