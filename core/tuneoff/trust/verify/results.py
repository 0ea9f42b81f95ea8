"""Verify a results folder: its plan, and every execution in it.

Executions are shared among processes where that pays; it is done without them where it cannot be.
"""

from __future__ import annotations

import contextlib
import filecmp
import logging
import multiprocessing
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from tuneoff.base.files import is_utf8, pinned, without_links
from tuneoff.base.layout import BEGUN, END, EVENTS, EXPORT, RUNS
from tuneoff.base.process_limits import die_with_parent
from tuneoff.errors import TuneoffError
from tuneoff.experiment.plan import PlannedRun
from tuneoff.record.events.reader import SUFFIX
from tuneoff.record.results_folder import begun, came_to_end, reading
from tuneoff.tell.frames.export import TABLES, export, export_key, stored_keys
from tuneoff.trust.official import check_official, manifest_beside
from tuneoff.trust.verify.execution import verify_execution
from tuneoff.trust.verify.findings import Check, Problem, VerifiedExecution
from tuneoff.trust.verify.planned import PlanFindings, VerificationTask, check_plan, check_runs

T = TypeVar("T")
R = TypeVar("R")

MOST_PROCESSES = 8
LEAST_TASKS = 16  # fewer are done before processes have started
CHUNK = 4  # tasks that are handed over at once
LARGE_BYTES = 50_000_000  # of a task's input: such tasks are done one at a time, for memory
Progress = Callable[[int, int], None]  # executions that were verified, all
AGAIN = "export again"


def run_all(
    work: Callable[[T], R],
    tasks: Sequence[T],
    sizes: Sequence[int],
    progress: Progress | None = None,
) -> list[R]:
    """Return `work` of each task, in their order. `work` must be importable by other processes, and end in a result.

    `sizes`: bytes of each task's input. Tasks that a process took with it when it died are done again, in this process.
    """
    report = progress or (lambda done, total: None)
    results: dict[int, R] = {}
    small = [index for index, size in enumerate(sizes) if size < LARGE_BYTES]
    count = usable_processes(len(small))
    report(0, len(tasks))
    if count > 1:
        with contextlib.suppress(BrokenProcessPool, OSError):  # one was killed, or none can be started: the rest is done here
            # fork is fast, and safe while there is no other thread; else a new interpreter for each
            context = multiprocessing.get_context("fork" if threading.active_count() == 1 else "spawn")
            executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
            try:
                mapped = executor.map(work, [tasks[index] for index in small], chunksize=CHUNK)
                for index, result in zip(small, mapped, strict=True):
                    results[index] = result
                    report(len(results), len(tasks))
            finally:
                executor.shutdown(wait=True, cancel_futures=True)
    for index, task in enumerate(tasks):
        if index not in results:
            results[index] = work(task)
            report(len(results), len(tasks))
    return [results[index] for index in range(len(tasks))]


def usable_processes(tasks: int) -> int:
    """Return how many processes share so many tasks: as many as there are processors, where that pays."""
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES, tasks // CHUNK) if tasks >= LEAST_TASKS else 1


def _begin(parent: int) -> None:
    """Die with the parent; on Ctrl-C at once and without a word: the parent says it."""
    die_with_parent(parent=parent)
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(1))


@dataclass(slots=True, kw_only=True)
class Verification:
    """What verifying a results folder came to."""

    results: Path
    plan: PlanFindings
    outcomes: list[VerifiedExecution] = field(default_factory=list)
    export_problems: list[Problem] = field(default_factory=list)
    skipped: list[PlannedRun] = field(default_factory=list)
    not_begun: list[PlannedRun] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    official_problems: list[Problem] = field(default_factory=list)  # of the bundle that the folder is of
    not_known: str = ""  # why nobody here can tell that these, or the plan, are right, if so

    @property
    def problems(self) -> list[Problem]:
        """All problems that were kept: of the plan, by execution, then of tables and answers that follow from these."""
        executions = (problem for outcome in self.outcomes for problem in outcome.problems)
        return [*self.plan.problems, *executions, *self.export_problems, *self.official_problems]

    @property
    def problem_count(self) -> int:
        """How many problems there are, also those that were not kept."""
        return len(self.problems) + sum(outcome.left_out for outcome in self.outcomes)

    @property
    def is_verified(self) -> bool:
        """Whether nothing differs."""
        return not self.problems


def verify(results: Path, progress: Progress | None = None) -> Verification:
    """Recompute everything in a results folder and return what differs; nothing is written.

    Raises:
        ResultsError: it is not a results folder, or it cannot be read.
    """
    plan = check_plan(results)
    listed = []  # what was begun, before its folders are listed: a command may begin another execution meanwhile
    try:
        listed = begun(results)
    except OSError as error:
        plan.add("file", "", f"cannot be read: {error.strerror}", where=BEGUN)
    with reading(results) as is_free:
        was_running = not is_free
    verification = Verification(results=results, plan=plan, not_known=plan.not_known)
    if any(problem.check == "version" for problem in plan.problems):
        return verification
    tasks = []
    bare: list[tuple[Path, str]] = []
    runs = _folders(results / RUNS, results, plan) if os.path.lexists(results / RUNS) else []
    for folder in (execution for run in runs for execution in _folders(run, results, plan)):
        where = folder.relative_to(results).as_posix()
        if os.path.lexists(folder / END):
            tasks.append(VerificationTask(folder, where, plan.analysis_digest, plan.accounting))
        else:
            bare.append((folder, where))
    with reading(results) as is_free:  # a command may have begun while the folder was listed
        is_running = was_running or not is_free
    has_ended = False if is_running else came_to_end(results)
    jobs = {run.run_id: run.spec.shared_key for run in plan.runs}
    verification.outcomes += _without_records(bare, jobs, is_running, has_ended)
    verification.outcomes += run_all(verify_execution, tasks, [_size(task.folder) for task in tasks], progress)
    verification.outcomes.sort(key=lambda outcome: outcome.where)
    is_listed = not any(problem.where == RUNS for problem in plan.problems)
    if plan.is_read and is_listed:
        verification.skipped = [run for run in plan.runs if run.skip_reason is not None]
        verification.not_begun = check_runs(plan, verification.outcomes, has_ended)
    if is_listed:
        # Each execution that was begun is there, unless its run is named already.
        named = {problem.where for problem in plan.problems}
        present = {(outcome.run_id, outcome.execution_id) for outcome in verification.outcomes}
        for run_id, execution_id in dict.fromkeys(listed):
            if (run_id, execution_id) not in present and f"{RUNS}/{run_id}" not in named:
                text = "was begun in this folder, but is not there: it was removed"
                plan.add("file", "", text, where=f"{RUNS}/{run_id}/{execution_id}")
    if os.path.lexists(results / EXPORT) and is_listed:
        if any(outcome.has_special_files for outcome in verification.outcomes):
            verification.notes.append(f"{EXPORT}/ was not compared: an execution has a file that must not be opened")
        else:
            defective = sorted(
                f"{outcome.run_id}/{outcome.execution_id}" for outcome in verification.outcomes if outcome.problems
            )
            run_ids = [run.run_id for run in plan.runs]
            verification.export_problems += export_problems(results, run_ids, defective, verification.notes)
    if (bundle := manifest_beside(results)) is not None and is_listed:
        verification.official_problems, not_known = check_official(results)
        verification.not_known = verification.not_known or not_known
        for outcome in verification.outcomes if not bundle.get("checkpoints") else ():
            outcome.problems = [
                problem
                for problem in outcome.problems
                if not (problem.what.startswith("checkpoints/") and problem.text.startswith("is missing"))
            ]
    if is_running:
        verification.notes.append("a tuneoff command works in this folder now: it is not complete")
    return verification


def _folders(path: Path, results: Path, plan: PlanFindings) -> list[Path]:
    """Return the folders in a folder; whatever else is there stands in an execution's place, or is nobody's."""
    try:
        with pinned(path) as folder:
            names = {name: is_utf8(name) and stat.S_ISDIR(os.lstat(folder / name).st_mode) for name in sorted(os.listdir(folder))}
        for name, is_ours in names.items():
            text = "is not a folder" if is_utf8(name) else "is not named in UTF-8"
            if not is_ours:
                plan.add("file", "", text, where=(path / name).relative_to(results).as_posix())
        return [path / name for name, is_ours in names.items() if is_ours]
    except OSError as error:
        plan.add("file", "", f"cannot be read: {error.strerror}", where=path.relative_to(results).as_posix())
        return []


def _without_records(
    bare: Sequence[tuple[Path, str]], jobs: Mapping[str, str], is_running: bool, has_ended: bool | None
) -> list[VerifiedExecution]:
    """Return the outcomes of executions without `end.json`: nothing of them is in any table.

    A killed command leaves that of a job, which the next command on the folder ends; any other had its end removed. `jobs`: what
    the copies of a job share, by run id.
    """
    outcomes = []
    for folder, where in bare:
        outcome = VerifiedExecution(where=where, run_id=folder.parent.name, execution_id=folder.name)
        try:
            names = os.listdir(folder)
            has_events = EVENTS in names and any(name.endswith(SUFFIX) for name in os.listdir(folder / EVENTS))
            outcome.is_empty = not has_events
        except OSError as error:
            outcome.add("file", "", f"cannot be read: {error.strerror}")
        outcomes.append(outcome)
    cut = [outcome.run_id for outcome in outcomes if not outcome.problems and not outcome.is_empty]
    is_one_job = len({jobs.get(run_id, run_id) for run_id in cut}) == 1 and len(set(cut)) == len(cut)
    for outcome in outcomes:
        if outcome.problems:
            continue
        if is_running:
            outcome.notes.append(f"no {END} yet")
        elif outcome.is_empty:
            outcome.notes.append("empty: its command ended while it was made; `--resume` ends it")
        elif has_ended is False and is_one_job:
            text = f"no {END}, as its command was killed: nothing of it was verified; `--resume` ends it"
            outcome.notes.append(text)
        else:
            text = f"is missing: its command was killed (`--resume` ends it), or {END} was removed"
            outcome.add("file", END, text)
    return outcomes


def _size(folder: Path) -> int:
    """Return the bytes of an execution's events; 0 where they cannot be seen."""
    try:
        with os.scandir(folder / EVENTS) as entries:
            return sum(entry.stat().st_size for entry in entries)
    except OSError:
        return 0


def export_problems(results: Path, run_ids: Sequence[str], defective: Sequence[str], notes: list[str]) -> Iterator[Problem]:
    """Yield a problem for each table of `export/` that is not what exporting gives now, though it is of the same executions.

    `defective`: executions ("run id/execution id") with problems of their own: no table of these can be held to anything.
    `notes`: what was not compared.
    """
    folder = results / EXPORT
    try:
        with pinned(folder) as path:
            present = sorted(os.listdir(path))
    except OSError as error:
        yield Problem(check="file", where=EXPORT, text=f"cannot be read: {error.strerror}")
        return
    if any(name.endswith(".parquet") for name in present):
        notes.append(f"{EXPORT}/*.parquet were not compared: only csv and json are")
    formats: tuple[Literal["csv", "json"], ...] = ("csv", "json")
    for format in formats:
        names = [f"{table}.{format}" for table in TABLES]
        if not any(name in present for name in names):
            continue
        for name in names:
            if name not in present:
                yield _problem("file", name, "is missing, the other tables are there")
            elif not (folder / name).is_file() or (folder / name).is_symlink():
                yield _problem("file", name, "is not a file")
                return
        if defective:
            notes.append(f"{EXPORT}/*.{format} were not compared: executions differ themselves: {', '.join(defective)}")
        elif stored_keys(folder).get(format) != export_key(results):
            notes.append(f"{EXPORT}/*.{format} are of other executions, or of another tuneoff: {AGAIN}")
        else:
            yield from _changed(results, format, [name for name in names if name in present], run_ids, notes)


def _changed(
    results: Path, format: Literal["csv", "json"], names: Sequence[str], run_ids: Sequence[str], notes: list[str]
) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory(prefix="tuneoff-verify-") as temporary:
        try:
            with _quiet():
                export(results, without_links(Path(temporary)), format, run_ids)
            for name in names:
                if not filecmp.cmp(results / EXPORT / name, Path(temporary, name), shallow=False):
                    yield _problem("value", name, "is not what the records give")
        except (OSError, TuneoffError) as error:
            notes.append(f"{EXPORT}/*.{format} could not be compared: {error}")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the export from warning of what verifying has named already."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _problem(check: Check, name: str, text: str) -> Problem:
    return Problem(check=check, where=f"{EXPORT}/{name}", text=f"{text}; {AGAIN}")
