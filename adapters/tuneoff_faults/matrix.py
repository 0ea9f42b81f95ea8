"""All cells of the built-in experiment: every adapter under every fault, by both settings."""

from __future__ import annotations

import itertools
import logging
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from tuneoff.base.interrupting import as_ended, interrupting
from tuneoff.base.output import one_line
from tuneoff.base.targets import load_target
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.judge.fault_results import CONTROL, DEFAULTS, NO_SUCH_PART, SURVIVED, FaultOutcome, FaultResult
from tuneoff.registry import adapter_class
from tuneoff.run.environments import ready
from tuneoff.run.supervisor.guardian import temporary_folder, watching
from tuneoff_faults.cell import MARK_FILE, MatrixCell, NotStruck, Setting
from tuneoff_faults.classify import Truth, best_of, classify, clean_values
from tuneoff_faults.faults import NO_FAULT, TrialFault
from tuneoff_faults.plain import FaultTools
from tuneoff_faults.run_cells import run_by_adapter, run_by_defaults
from tuneoff_faults.small_disk import can_mount

log = logging.getLogger("tuneoff.faults")  # a command's messages go to standard error

FILE = Path(__file__).with_name("faults.yaml")
MORE_SECONDS = 40.0  # Optuna's journal lock is taken from a dead holder after 30 s


def run_matrix(
    plan: Plan,
    faults: Sequence[TrialFault],
    settings: Sequence[Setting],
    at_once: int,
    tell: Callable[[str], None],
    keep: Path | None = None,
    *,
    offline: bool = False,
) -> list[FaultResult]:
    """Run all cells, at most `at_once` at the same time; where a setting has faults, its control runs too.

    The files of the cells are removed, unless `keep` is an empty folder for them. `offline`: no environment is made.

    Raises:
        MissingPackageError: an environment cannot be made, or is not there with `offline`.
        KeyboardInterrupt: SIGINT, SIGTERM or SIGHUP; every process is ended and every folder removed then.
    """
    experiment = plan.counted[0].spec.experiment
    values = clean_values(experiment, {**experiment.workload.options, "configurations": [], "epoch_seconds": 0.0})
    faulty = best_of({index: curve[-1] for index, curve in enumerate(values)}, experiment.objective)
    assert faulty is not None
    faults = [NO_FAULT, *(fault for fault in faults if fault is not NO_FAULT)]
    specs = [run.spec for run in plan.counted if not skip_reason(run)]
    with (
        ready(specs, tell, offline=offline),
        interrupting(),
        watching() as announce,
        temporary_folder(announce, "tf") as root,  # Ray's sockets
    ):
        (root / "p").mkdir()
        has_disk, stopping = can_mount(root / "p"), threading.Event()
        shutil.rmtree(root / "p", ignore_errors=True)
        cells = [
            MatrixCell(
                number=number,
                label=run.label,
                setting=setting,
                fault=fault,
                spec=run.spec,
                tools=fault_tools(run.spec.adapter),
                faulty=faulty,
                folder=root / str(number),
                has_disk=has_disk,
                stopping=stopping,
                announce=announce,
            )
            for number, (fault, setting, run) in enumerate(itertools.product(faults, settings, plan.counted))
        ]
        runner = _Runner(plan, values, tell, len(cells))
        with ThreadPoolExecutor(at_once) as pool:
            try:
                results = _all(pool, runner.run, [cell for cell in cells if cell.fault is NO_FAULT])
                runner.controls = {
                    result.adapter: result.seconds
                    for result in results
                    if result.setting == DEFAULTS and result.seconds is not None
                }
                results += _all(pool, runner.run, [cell for cell in cells if cell.fault is not NO_FAULT])
            except BaseException:  # Ctrl-C: no further cell begins, and those that run are ended
                stopping.set()
                pool.shutdown(cancel_futures=True)
                raise
        if keep is not None:
            _keep(root, keep)
    return _with_waste(results)


def _all(pool: Executor, run: Callable[[MatrixCell], FaultResult], cells: Iterable[MatrixCell]) -> list[FaultResult]:
    """Return the results in the order of the cells; the first error ends the wait."""
    futures = [pool.submit(run, cell) for cell in cells]
    for future in as_ended(futures):
        future.result()
    return [future.result() for future in futures]


def _keep(root: Path, folder: Path) -> None:
    """Copy the files of the cells, as far as that goes."""
    try:
        shutil.copytree(root, folder, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("t", "kept"))
    except OSError as error:  # shutil.Error is one; it has a (source, target, reason) for each file
        files = error.args[0] if isinstance(error, shutil.Error) else []
        reason = f"{len(files)} files, the first: {files[0][2]}" if files else error
        log.warning("not all files of the runs are kept in %s: %s", folder, reason)


def fault_tools(adapter: str) -> FaultTools | None:
    """Return what the adapter's author gives for this command, or None."""
    target = getattr(adapter_class(adapter), "fault_tools", None)
    tools = load_target(target) if target is not None else None
    return tools if isinstance(tools, FaultTools) else None


@dataclass
class _Runner:
    """Runs cells from several threads."""

    plan: Plan
    values: tuple[tuple[float, ...], ...]
    tell: Callable[[str], None]
    count: int
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    controls: Mapping[str, float] = field(default_factory=dict)  # seconds of each plain program without a fault

    def run(self, cell: MatrixCell) -> FaultResult:
        if reason := skip_reason(next(run for run in self.plan.counted if run.spec is cell.spec)):
            skipped = reason
        elif cell.spec.platform not in ("local", "emulated"):
            skipped = f"platform {cell.spec.platform!r} is not on this machine"
        elif cell.fault.strike == "part" and (cell.tools is None or cell.tools.part(cell.fault.name) is None):
            skipped = NO_SUCH_PART
        elif cell.setting == "defaults" and cell.tools is None:
            skipped = "its author gives no plain program (`fault_tools`)"
        else:
            skipped = ""
        result = _result(cell, skipped) if skipped else self._measured(cell)
        with self._lock:
            self._done += 1
            if not skipped:
                text = f"{cell.setting}: {cell.label}, {cell.fault.name}: {result.outcome or result.reason}"
                self.tell(f"{self._done}/{self.count} {text}")
        return result

    def _measured(self, cell: MatrixCell) -> FaultResult:
        cell.folder.mkdir()
        experiment = cell.spec.experiment
        truth = Truth(values=self.values, objective=experiment.objective, faulty=cell.faulty, is_sound=cell.fault.is_sound)
        try:
            if cell.setting == "defaults":
                # Twice its control's seconds and some more, never more than the experiment's limit.
                longest, control = experiment.timeouts.trials_seconds, self.controls.get(cell.label)
                seen = run_by_defaults(cell, longest if control is None else min(longest, 2 * control + MORE_SECONDS))
            else:
                seen = run_by_adapter(cell, self.plan.content)
            mark = cell.kept / MARK_FILE
            if not (cell.is_struck if cell.fault.strike is not None else cell.fault.kind is None or mark.exists()):
                message = seen.failure or seen.words or ("the run ended well" if seen.ended else "it says nothing")
                raise NotStruck(f"its trial never came so far: {message}")
        except NotStruck as error:
            return _result(cell, f"could not be struck: {error}", is_missed=True)
        outcome, reason = classify(truth, seen)
        return _result(cell, reason, outcome=outcome, seconds=round(seen.seconds, 3))


def _result(cell: MatrixCell, reason: str, outcome: FaultOutcome | None = None, **fields: Any) -> FaultResult:
    reason = one_line(reason)
    return FaultResult(adapter=cell.label, setting=cell.setting, fault=cell.fault.name, outcome=outcome, reason=reason, **fields)


def skip_reason(run: PlannedRun) -> str:
    """Return why an adapter cannot run the experiment, or "". One that repeats no trials runs it without retries."""
    reason = run.skip_reason or ""
    return "" if "failures.retries" in reason else reason


def _with_waste(results: Sequence[FaultResult]) -> list[FaultResult]:
    """Return the results with the time that the fault cost: beyond the control's, or all of it where no answer came."""
    controls = {(result.adapter, result.setting): result.seconds for result in results if result.fault == CONTROL}
    with_waste = []
    for result in results:
        wasted = None
        if result.seconds is not None:
            control = controls[result.adapter, result.setting]
            if result.outcome not in SURVIVED:
                wasted = result.seconds
            elif control is not None and result.seconds >= control:  # else the machine was busier then: no figure
                wasted = round(result.seconds - control, 3)
        with_waste.append(structs.replace(result, wasted_seconds=wasted))
    return with_waste
