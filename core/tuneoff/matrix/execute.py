"""Execute a plan: prepare the data, run what is not done, survive interruption, leave a resumable folder."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from tuneoff.accounting.charge import of_run
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.identity import canonical_json
from tuneoff.experiment.names import emulated_label, run_name, short_label
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.lifecycle.context import SPEC
from tuneoff.matrix import machine
from tuneoff.matrix.finish import finish
from tuneoff.matrix.folder import ResultsFolder, RunEnd, is_final, run_ends, standing
from tuneoff.matrix.listener import Listener
from tuneoff.matrix.plan import Plan, PlannedRun
from tuneoff.matrix.provenance import Provenance, prepare
from tuneoff.matrix.uncharged import uncharged_lines
from tuneoff.power.baseline import baseline_seconds
from tuneoff.power.plan import PowerPlan
from tuneoff.power.ready import HostPower
from tuneoff.records.derive import KILLED
from tuneoff.records.model import RunRecord
from tuneoff.records.store import FILE_NAME as RUN_FILE
from tuneoff.records.store import read_runs
from tuneoff.registry import adapter_class
from tuneoff.supervisor.guardian import Guardian
from tuneoff.supervisor.leftovers import clean_results
from tuneoff.supervisor.outside import undeploy_outside
from tuneoff.supervisor.processes import become_subreaper
from tuneoff.supervisor.run import supervise

log = logging.getLogger(__name__)

UNDEPLOY_SECONDS = 20.0  # for what earlier commands left outside this machine


def execute(plan: Plan, results: Path, *, listener: Listener, resume: bool = False) -> list[RunEnd]:
    """Run every run of `plan` that has no final result in `results`, and return what each planned run came to.

    SIGINT and SIGTERM un-deploy the current run within 15 s, mark it interrupted, and end the matrix; `resume` goes on.

    Raises:
        ResultsError: the folder cannot be used.
        ExperimentError: a power meter that the file names cannot be used; before any run starts.
        DataError: a workload's data is not there; before any run starts.
    """
    results = results.absolute()  # trial processes may run in another folder
    meters = HostPower(plan.power)
    try:
        return _execute(plan, results, listener, meters, resume=resume)
    finally:
        meters.close()


def _execute(plan: Plan, results: Path, listener: Listener, meters: HostPower, *, resume: bool) -> list[RunEnd]:
    with ResultsFolder(results, plan, resume=resume) as folder:
        killed = clean_results(results)
        if killed:
            log.warning("ended %d processes that an earlier command left behind", len(killed))
        for left in undeploy_outside(results, UNDEPLOY_SECONDS):
            log.warning("an earlier command left, and it cannot be removed now: %s", left)
        _recover(results)
        data = _prepare_data(plan)
        become_subreaper()
        guardian = Guardian(results, folder.lock)
        try:
            with _full_disk(results), _interruptible() as interrupt:
                _run_all(plan, results, listener, interrupt, data, meters)
                if not interrupt.is_set():
                    folder.finish()
        except BaseException:
            guardian.let_clean()  # a run may not have come to its own clean-up
            raise
        guardian.dismiss()
        return run_ends(results, plan)


def _run_all(
    plan: Plan, results: Path, listener: Listener, interrupt: threading.Event, data: dict[str, Provenance], meters: HostPower
) -> None:
    known = standing(list(read_runs(results)))
    final = {run_id for run_id, record in known.items() if is_final(record)}
    needed = {run.spec.adapter_target for run in plan.counted if run.skip_reason is None and run.run_id not in final}
    first: machine.MachineState | None = None
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
        if first is None:
            idle = baseline_seconds(power)
            listener.noted(f"{power.line()}{f'; first its idle power is read for {idle:g} s' if idle else ''}")
            for lacking in uncharged_lines(plan, time.time_ns()):
                listener.noted(lacking)
            power = meters.prepare(interrupt, listener.noted)
        state = machine.look()
        first = first or state
        listener.run_started(position, len(plan.runs), _label(run), run.run_id)
        started = time.monotonic()
        record = _run(run, results, listener, interrupt, state, first, plan, data, power)
        seconds = time.monotonic() - started
        listener.run_ended(position, len(plan.runs), _label(run, record.emulated), record.status, record.reason, seconds)


def _run(
    run: PlannedRun,
    results: Path,
    listener: Listener,
    interrupt: threading.Event,
    state: machine.MachineState,
    first: machine.MachineState,
    plan: Plan,
    data: dict[str, Provenance],
    power: PowerPlan,
) -> RunRecord:
    adapter = adapter_class(run.spec.adapter)
    accounting = of_run(plan.accounting, adapter.capabilities)
    ended = supervise(run.spec, results, listener, interrupt, machine.notes(state, first), accounting, power)
    environment = {
        "limits": dict(ended.limits),
        "machine_before": state.to_json(),
        "analysis_digest": plan.analysis_digest,
        **data[_data_key(run.spec)].environment(),
    }
    return finish(ended.execution.folder, run.spec, ended.verdict, adapter, environment)


def _recover(results: Path) -> None:
    """Write the record of executions whose command was killed: their finished trials are kept, their status is interrupted."""
    for spec_file in sorted(results.glob(f"runs/*/*/{SPEC}")):
        folder = spec_file.parent
        if (folder / RUN_FILE).exists():
            continue
        try:
            spec = run_spec_from_json(json.loads(spec_file.read_text())["run"])
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
