"""Which results folder a command means."""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.commands import command
from tuneoff.base.files import without_links
from tuneoff.base.layout import PLAN
from tuneoff.base.output import note
from tuneoff.errors import ExperimentError, ResultsError
from tuneoff.experiment.seeds import seeds_text

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan

RESULTS = Path("results")


def folder_path(text: str) -> Path:
    """Return the path to a folder that a person named: links may lead to it, and below it none is followed."""
    return without_links(Path(text))


def make_empty(folder: Path, option: str) -> None:
    """Make a new folder, or see that one is empty and can be written; `option`: that named it.

    Raises:
        ResultsError: it has files already, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ResultsError(f"{folder} must be a new or empty folder, but has files; choose another {option}")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ResultsError(f"{folder} cannot be written: {error.strerror}; choose another {option}") from error


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", metavar="DIR", type=folder_path, help="results folder; default: a new one, results/<experiment>-<UTC time>"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with a results folder, what is done stays, and an interrupted run is repeated whole; default: the newest one "
        "under results/ with this plan",
    )


def add_results(parser: argparse.ArgumentParser, text: str = "results folder; default: the newest one under results/") -> None:
    parser.add_argument("results", metavar="DIR", type=folder_path, nargs="?", help=text)


def new_folder(plan: Plan, root: Path = RESULTS, now: datetime | None = None) -> Path:
    """Return a path under `root` that does not exist yet; makes nothing."""
    time = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    root = without_links(root)
    path = root / f"{plan.name}-{time}"
    count = 1
    while path.exists():
        count += 1
        path = root / f"{plan.name}-{time}-{count}"
    return path


def newest_folder(root: Path = RESULTS, *, needs_runs: bool = False) -> Path:
    """Return the results folder under `root` that was begun last; `needs_runs`: say so where no run of it has ended.

    Raises:
        ResultsError: there is none.
    """
    from tuneoff.record.store import ended_executions

    folders = _newest_first(root)
    if not folders:
        raise ResultsError(f"there is no results folder under {root.absolute()}; name one, or run: {command('compare', 'FILE')}")
    if needs_runs and not any(ended_executions(folders[0])):
        with_runs = next((folder for folder in folders if any(ended_executions(folder))), None)
        other = f"; the newest with runs is {with_runs}" if with_runs is not None else ""
        note(f"{folders[0]} is the newest folder, but no run of it has ended{other}")
    return folders[0]


def newest_two(root: Path = RESULTS) -> tuple[Path, Path]:
    """Return the results folder under `root` that was begun last, and before it the last one of a file of the same name.

    Raises:
        ResultsError: there are no two.
    """
    from tuneoff.record.results_folder import read_plan

    newest, *others = _newest_first(root) or [newest_folder(root)]
    name = read_plan(newest).name
    for folder, plan in _plans(others):
        if plan.name == name:
            return folder, newest
    raise ResultsError(f"the newest results folder {newest} is the only one of {name!r}; name two")


def resumed(plan: Plan, named: Path | None, *, adds_seeds: bool, root: Path = RESULTS) -> tuple[Path, Plan]:
    """Return the results folder to go on with, and the plan with the analysis that was frozen in it.

    `named`: the folder; None: the newest one under `root` with this plan, else with its first seeds. `adds_seeds`: the command
    line names the seeds, so that those which the folder has not are to be added.

    Raises:
        ExperimentError: there is nothing to resume.
        ResultsError: the folder cannot be read, or has other seeds.
    """
    from tuneoff.experiment import analysis
    from tuneoff.record.results_folder import read_plan

    if named is None:
        candidates = list(plans(root))
        same = [folder for folder, earlier in candidates if earlier.plan_id == plan.plan_id]
        same += [folder for folder, earlier in candidates if adds_seeds and earlier.begins(plan)]
        if not same:
            rule = f"no folder under {root.absolute()} holds the plan of {plan.path}"
            raise ExperimentError(f"{rule}; name it by --output, or leave out --resume")
        named = same[0]
    elif not (named / PLAN).exists():
        is_there = "holds no plan" if named.exists() else "is not there"
        raise ExperimentError(f"{named} {is_there}, so nothing can be resumed; correct it, or leave out --resume")
    earlier = read_plan(named)
    if not (earlier.begins(plan) or plan.begins(earlier)) or analysis.difference(
        *({**side.analysis, "seeds": None} for side in (earlier, plan))
    ):
        return named, plan  # what is otherwise is told when the folder is opened
    seeds = (earlier.seeds, plan.seeds)
    if earlier.plan_id != plan.plan_id and not (adds_seeds and earlier.begins(plan)):
        has, requested = map(seeds_text, seeds)
        add = f"; to add the others, which then only describe: --seeds {requested}" if earlier.begins(plan) else ""
        raise ResultsError(f"{named} has seeds {has}, but asked for are {requested}; to go on: --seeds {has}{add}")
    return named, replace(plan, analysis=earlier.analysis)


def plans(root: Path = RESULTS) -> Iterator[tuple[Path, Plan]]:
    """Yield the results folders under `root` with their plans, the newest first; damaged ones and other versions are left out."""
    return _plans(_newest_first(root))


def _plans(folders: Iterable[Path]) -> Iterator[tuple[Path, Plan]]:
    from tuneoff.record.results_folder import read_plan

    for folder in folders:
        with contextlib.suppress(ResultsError):
            yield folder, read_plan(folder)


def _newest_first(root: Path) -> list[Path]:

    dated = []
    try:
        for name in os.listdir(root):  # glob hides from Python 3.13 on that a folder may not be read
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                dated.append(((root / name / PLAN).stat().st_mtime_ns, root / name))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultsError(f"{root.absolute()} cannot be read: {error.strerror}; name a results folder") from error
    return [without_links(path) for _, path in sorted(dated, reverse=True)]
