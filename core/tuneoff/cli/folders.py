"""Which results folder a command means."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tuneoff.base.files import without_links
from tuneoff.errors import ResultsError

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan

RESULTS = Path("results")


def folder_path(text: str) -> Path:
    """Return the path to a folder that a person named: links may lead to it, and below it none is followed."""
    return without_links(Path(text))


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", metavar="DIR", type=folder_path, help="results folder; default: a new one, results/<experiment>-<UTC time>"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with a results folder, what is done stays; default: the newest one under results/ with this plan",
    )
    parser.add_argument(
        "--continue",
        dest="continues",
        action="store_true",
        help="resume, and let an interrupted run keep its finished trials, instead of repeating it whole; such a run is in no "
        "comparison of time, energy or cost",
    )


def add_results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "results", metavar="DIR", type=folder_path, nargs="?", help="results folder; default: the newest one under results/"
    )


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


def newest_folder(root: Path = RESULTS) -> Path:
    """Return the results folder under `root` that was begun last.

    Raises:
        ResultsError: there is none.
    """
    found = _newest_first(root)
    if not found:
        raise ResultsError(f"there is no results folder under {root.absolute()}; name one, or run: tuneoff compare FILE")
    return found[0]


def newest_two(root: Path = RESULTS) -> tuple[Path, Path]:
    """Return the results folder under `root` that was begun last, and before it the last one of a file of the same name.

    Raises:
        ResultsError: there are no two.
    """
    from tuneoff.record.results_folder import read_plan

    newest, *others = _newest_first(root) or [root]
    name = read_plan(newest).name if others else ""
    for folder, plan in _plans(others):
        if plan.name == name:
            return folder, newest
    raise ResultsError(f"there are no two results folders of the same file under {root.absolute()}; name two")


def folder_to_resume(plan: Plan, root: Path = RESULTS) -> Path:
    """Return the newest results folder under `root` that holds this plan.

    Raises:
        ResultsError: there is none.
    """
    for folder, known in plans(root):
        if known.plan_id == plan.plan_id:
            return folder
    raise ResultsError(
        f"no folder under {root.absolute()} holds the plan of {plan.path}; name it by --output, or leave out --resume"
    )


def plans(root: Path = RESULTS) -> Iterator[tuple[Path, Plan]]:
    """Yield the results folders under `root` with their plans, the newest first; damaged ones and other versions are left out."""
    return _plans(_newest_first(root))


def _plans(folders: Iterable[Path]) -> Iterator[tuple[Path, Plan]]:
    from tuneoff.record.results_folder import read_plan

    for folder in folders:
        with contextlib.suppress(ResultsError):
            yield folder, read_plan(folder)


def _newest_first(root: Path) -> list[Path]:
    from tuneoff.record.results_folder import PLAN

    try:
        found = [(path.stat().st_mtime_ns, path.parent) for path in root.glob(f"*/{PLAN}")]
    except OSError as error:
        raise ResultsError(f"{root.absolute()} cannot be read: {error.strerror}; name a results folder") from error
    return [without_links(path) for _, path in sorted(found, reverse=True)]
