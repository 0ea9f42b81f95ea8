"""What each planned run of a results folder came to, with or without a record, and who works in the folder."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.files import read_regular
from tuneoff.base.layout import END, EVENTS, LOCK, RUNS, SPEC
from tuneoff.base.processes import is_alive
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import Plan, PlannedRun
from tuneoff.measure.stored import read_runs
from tuneoff.record.endings import KILLED, Ruling
from tuneoff.record.events.reader import EventLog
from tuneoff.record.results_folder import end_of, read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import is_final, selected_executions

STATUSES = ("done", "failed", "timeout", "interrupted", "skipped", "running", "planned")
RUNNING = "running"
UNFINISHED = ("interrupted", RUNNING, "planned")  # statuses that are not yet what the plan asked for
ELSEWHERE = "it was begun on another host; whether it still runs cannot be determined on this host"
Without = Mapping[str, tuple[str, str | None]]  # status and reason by run id


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What a planned run came to: one of `STATUSES`; planned is not run yet."""

    run_id: str
    label: str
    status: str
    reason: str | None = None
    folder: Path | None = None
    flags: tuple[str, ...] = ()  # names


def run_ends(path: Path, plan: Plan | None = None) -> list[RunEnd]:
    """Return what each planned run came to, warm-ups left out, in the plan's order."""
    plan = plan or read_plan(path)
    without = without_record(path)  # before the records: a run that ends meanwhile has one
    return ends_of(path, plan, selected_executions(read_runs(path)), without)


def ends_of(path: Path, plan: Plan, records: Mapping[str, RunRecord], without: Without) -> list[RunEnd]:
    """Return the same by the records that stand for the runs, by run id, and by `without_record`, read before these."""
    ends = []
    for run in plan.counted:
        record = records.get(run.run_id) if run.skip_reason is None else None
        status, reason = came_out(run, record, without)
        end = RunEnd(
            run_id=run.run_id,
            label=run.label,
            status=status,
            reason=reason,
            folder=path / RUNS / run.run_id / record.execution_id if record is not None else None,
            flags=tuple(dict.fromkeys(flag.name for flag in record.flags)) if record is not None else (),
        )
        ends.append(end)
    return ends


def came_out(run: PlannedRun, record: RunRecord | None, without: Without) -> tuple[str, str | None]:
    """Return status and reason of a planned run. `record`: which stands for it; `without`: see `without_record`."""
    if run.skip_reason is not None:
        return "skipped", run.skip_reason
    ending = without.get(run.run_id, ("planned", None))
    if record is None or (ending[0] == RUNNING and not is_final(record)):  # it may be repeated at the moment
        return ending
    return record.status, record.reason


def without_record(results: Path) -> Without:
    """Return (status, reason) of each run that has an execution without a record: interrupted, or running where that may be."""
    held = holder(results)  # first: what it ends meanwhile has a record
    folders = [str(path) for path in results.glob(f"{RUNS}/*/*") if path.is_dir() and not os.path.lexists(path / END)]
    begun = {folder: begun_ns(folder) for folder in folders}
    running = {folder for folder in under_way(held, begun) if held.works or _is_elsewhere(held, folder)}
    ended: tuple[str, str | None] = held.ruling.status, held.ruling.reason or ""
    works = (RUNNING, None if held.works else ELSEWHERE)
    by_state = sorted((folder in running, Path(folder).parent.name) for folder in folders)  # one that runs stands for its run
    return {run_id: works if is_running else ended for is_running, run_id in by_state}


def _is_elsewhere(held: Holder, folder: str) -> bool:
    """Tell whether a command on another host began it and came to no end: whether it runs cannot be told from here."""
    try:
        first = next(iter(EventLog(Path(folder) / EVENTS)), None)
    except ResultsError:  # it has written nothing yet
        first = None
    return held.pid is not None and (first is None or first[0].host != os.uname().nodename)


def under_way(held: Holder, begun: Mapping[str, int]) -> list[str]:
    """Return those of these executions that may be at work, the newest last: where a command works in the folder what it began,
    which the copies of a job are at the same time; else one, which a command on another host may have begun."""
    since = held.took_ns if held.works else 0
    ordered = sorted((ns, folder) for folder, ns in begun.items() if ns >= since)
    return [folder for _, folder in ordered[0 if held.works else -1 :]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The command that took the folder last. `pid` None: it came to its end, or never was."""

    pid: int | None
    works: bool  # it lives, on this machine, and has the lock open
    took_ns: int  # when it took the folder (wall clock); 0: not known
    ruling: Ruling = KILLED  # how runs ended that it left without a record


def holder(results: Path) -> Holder:
    """Return who took the folder last, and whether it still works there."""
    path = results / LOCK
    try:
        content = read_regular(path, 1000)
        state = os.lstat(path)
    except OSError:  # no lock: a folder that was copied without it
        return Holder(pid=None, works=False, took_ns=0)
    text = content.decode(errors="replace").strip()
    if not (text.isascii() and text.isdigit()):
        return Holder(pid=None, works=False, took_ns=state.st_mtime_ns, ruling=end_of(content))
    pid = int(text)
    return Holder(pid=pid, works=is_alive(pid) and _has_open(pid, state), took_ns=state.st_mtime_ns)


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Tell whether a process has a file open; a process of somebody else, into which nobody may look, counts as one that has.

    A pid that was used again by another process is told apart so.
    """
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return True
    except OSError:
        return False
    for name in descriptors:
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), file):
                return True
    return False


def begun_ns(folder: str) -> int:
    """Return when an execution was begun: when its specification was written, which is done once."""
    for path in (os.path.join(folder, SPEC), folder):
        try:
            return os.stat(path).st_mtime_ns
        except OSError:
            continue
    return 0
