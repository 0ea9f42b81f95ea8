"""A results folder as a stranger may send it: what is planted where, and what must not happen."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from builders.event_logs import example_b
from builders.killed_logs import SPEC, killed_log
from builders.results_folders import Results
from builders.worked_examples import write_example
from hostile.actors import CUT_NAME, Actor
from tuneoff.errors import TuneoffError
from tuneoff.record.endings import KILLED
from tuneoff.tell.frames.export import export

MARK = b"SECRET-7391"
DONE, CUT = "DONE", "CUT"  # stand for the folders of the executions in the names of places
PID = "PID"  # stands for this process's number
MOST_SECONDS = 20


def build(path: Path) -> Results:
    """Write a folder with everything that tuneoff ever reads or writes: a run that is done, and one whose command was killed."""
    done = replace(example_b()[1], adapter="optuna")
    results = Results(path, [done, SPEC])
    write_example(results.folder(done), "B")
    results.finish(done)
    results.add_log(SPEC, killed_log(CUT_NAME), KILLED)
    cut = results.folder(SPEC, CUT_NAME)
    for folder in (results.folder(done), cut):
        for name in (
            "checkpoints/t00000.safetensors",
            "checkpoints/t00009.safetensors",
            "slots/0",
            "framework/x",
            "framework/ray.json",
        ):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"x")
        for name in ("log.txt", "outside.txt", "versions.json", "leftovers.jsonl", "test.json"):
            (folder / name).write_text("{}\n")
    results.finish(done)
    results.finish(SPEC, cut.name, KILLED)
    for name in (
        ".lock",
        ".executions",
        "reproduction.json",
        "report/report.html",
    ):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("")
    export(path, path / "export", "csv")
    return results


# What is planted in a place; `mine` is a folder outside, with a file and a folder of mine

Plant = Callable[[Path, Path], None]


def _instead(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def to_my_file(path: Path, mine: Path) -> None:
    _instead(path)
    path.symlink_to(mine / "secret.txt")


def to_my_copy(path: Path, mine: Path) -> None:
    """What is there lies outside, and a link leads to it."""
    if path.is_dir():
        shutil.copytree(path, mine / "copy")
    else:
        (mine / "copy").write_bytes(path.read_bytes() if path.exists() else b"")
    _instead(path)
    path.symlink_to(mine / "copy")


def to_my_folder(path: Path, mine: Path) -> None:
    _instead(path)
    path.symlink_to(mine / "folder", target_is_directory=True)


def to_nothing(path: Path, mine: Path) -> None:
    _instead(path)
    path.symlink_to(mine / "new")


def in_a_circle(path: Path, mine: Path) -> None:
    _instead(path)
    path.symlink_to(path.name)


def to_a_device(path: Path, mine: Path) -> None:
    _instead(path)
    path.symlink_to("/dev/zero")


def a_pipe(path: Path, mine: Path) -> None:
    _instead(path)
    os.mkfifo(path)


def a_second_name(path: Path, mine: Path) -> None:
    """A file that has another name outside, as in a copy by hard links; of a folder each file has."""
    kept = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
    for number, one in enumerate(kept):
        os.link(one, mine / f"linked-{number}")


def a_folder(path: Path, mine: Path) -> None:
    _instead(path)
    path.mkdir()


PLANTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (to_my_file, to_my_copy, to_my_folder, to_nothing, in_a_circle, to_a_device, a_pipe, a_second_name, a_folder)
}
FOLLOWED = ("to_my_copy", "a_pipe", "a_second_name")  # each in its own way; the others are tried with all actors
PLACES = (
    ".lock",
    ".executions",
    "matrix.json",
    f".matrix.json.{PID}.tmp",
    "reproduction.json",
    "runs",
    f"runs/{DONE}/..",
    f"runs/{DONE}",
    f"runs/{DONE}/run.json",
    f"runs/{DONE}/.run.json.{PID}.tmp",
    f"runs/{DONE}/end.json",
    f"runs/{DONE}/.end.json.{PID}.tmp",
    f"runs/{DONE}/spec.json",
    f"runs/{DONE}/events",
    f"runs/{DONE}/power.jsonl",
    f"runs/{DONE}/accounting.json",
    f"runs/{DONE}/test.json",
    f"runs/{CUT}/..",
    f"runs/{CUT}",
    f"runs/{CUT}/run.json",
    f"runs/{CUT}/end.json",
    f"runs/{CUT}/spec.json",
    f"runs/{CUT}/events",
    f"runs/{CUT}/events/new.jsonl",
    f"runs/{CUT}/checkpoints",
    f"runs/{CUT}/checkpoints/t00000.safetensors",
    f"runs/{CUT}/slots",
    f"runs/{CUT}/log.txt",
    f"runs/{CUT}/leftovers.jsonl",
    f"runs/{CUT}/outside.txt",
    f"runs/{CUT}/versions.json",
    f"runs/{CUT}/later",
    f"runs/{CUT}/framework",
    f"runs/{CUT}/framework/ray.json",
    "report",
    "report/report.html",
    f"report/.report.html.{PID}.tmp",
    "export",
    "export/runs.csv",
    f"export/.runs.csv.{PID}.tmp",
    "export/.runs.csv.tmp",
)


def place_of(folder: Results, place: str) -> Path:
    """Return the path of a place in a folder."""
    done, cut = (f"{run.run_id}/{name}" for run, name in zip(folder.plan.runs, ("run1-abc", CUT_NAME), strict=True))
    text = place.replace(DONE, done).replace(CUT, cut).replace(PID, str(os.getpid()))
    return Path(os.path.normpath(folder.path / text))


UNDEPLOY_PLACES = [place for place in PLACES if place == "runs" or CUT in place]


# What must not happen

State = dict[str, tuple[int, int, int, bytes | str | None]]


def state_of(folder: Path) -> State:
    """Return what is below a folder: kind, place on the disk, time, and content of each entry."""
    found: State = {}
    for path in sorted(folder.rglob("*")):
        entry = path.lstat()
        content: bytes | str | None = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path)] = (entry.st_mode, entry.st_ino, entry.st_mtime_ns, content)
    return found


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """End what waits for a pipe."""

    waited = []

    def late(number: int, frame: FrameType | None) -> None:
        waited.append(seconds)
        raise AssertionError(f"it took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        assert not waited, f"it took more than {seconds} s"  # whatever was made of it


@dataclass(frozen=True)
class Home:
    """Where an attack lives: what is `mine` must be afterwards as it was."""

    folder: Results
    mine: Path
    out: Path

    @classmethod
    def make(cls, built: Results, root: Path) -> Home:
        path = Path(shutil.copytree(built.path, root / "results"))
        folder = object.__new__(Results)
        folder.path, folder.plan = path, built.plan
        mine, out = root / "mine", root / "out"
        for one in (mine / "folder" / "deep", out):
            one.mkdir(parents=True)
        (mine / "secret.txt").write_bytes(MARK + b"\n")
        for name in ("t00000.safetensors", "t00001.safetensors", "curve.svg", "report.html", "runs.csv", "run.json", "0"):
            (mine / "folder" / name).write_bytes(MARK)
        return cls(folder, mine, out)


class Outcome(NamedTuple):
    """What came of the actors, by their names: what they did and must not do, and what they refused in one line."""

    wrong: dict[str, str]
    refused: dict[str, str]


def attacked(home: Home, actors: dict[str, Actor], told: Callable[[], str] = lambda: "") -> Outcome:
    """Let each act. `told`: what was printed since it was last asked."""
    wrong, refused = {}, {}
    before = state_of(home.mine)
    for name, act in actors.items():
        for path in home.out.iterdir():
            path.unlink()
        try:
            with in_time(MOST_SECONDS):
                said = act(home.folder, home.out)
        except TuneoffError as error:
            said = str(error).encode()
            refused[name] = str(error)
            if "\n" in str(error):
                wrong[name] = f"more than one line: {error}"
        except Exception as error:  # whatever it is, a user would be told of a fault of tuneoff
            wrong[name] = f"{type(error).__name__}: {error}"
            said = b""
        printed = told()
        if MARK in said or MARK.decode() in printed or any(MARK in path.read_bytes() for path in home.out.iterdir()):
            wrong[name] = "it told what is in a file of mine"
        now = state_of(home.mine)
        if now != before:
            changed = {path for path in {*now, *before} if now.get(path) != before.get(path)}
            wrong[name] = f"it changed {sorted(Path(path).relative_to(home.mine).as_posix() for path in changed)}"
            before = now
    return Outcome(wrong, refused)
