"""Run numbered cases in worker processes, print each failure with the way to reproduce it, and end with what was met."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.sandbox import Answer, Place

ROOT = Path(__file__).parents[2]


@dataclass(slots=True, kw_only=True)
class Report:
    """What one case did, what it was answered, and what is wrong with that."""

    index: int
    what: str
    kinds: tuple[str, ...]
    answers: list[tuple[str, int | None, float, int]] = field(default_factory=list)  # command, code, seconds, bytes
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, command: str, answer: Answer, problems: Sequence[str]) -> None:
        """Add a call of the case."""
        self.answers.append((command, answer.code, answer.seconds, answer.peak_bytes))
        self.failures += [f"`tuneoff {' '.join(answer.argv)[:160]}`: {problem}" for problem in problems]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One case for a worker: which, where, and with what."""

    seed: int
    index: int
    folder: Path
    keep: bool
    sources: Path | None = None

    @property
    def chance(self) -> random.Random:
        return random.Random(f"{self.seed}:{self.index}")


@dataclass(slots=True)
class Totals:
    """What all cases came to."""

    cases: int = 0
    codes: dict[str, Counter[str]] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    failed: list[int] = field(default_factory=list)
    slowest: tuple[float, int, str] = (0.0, -1, "")
    largest: tuple[int, int, str] = (0, -1, "")

    def add(self, report: Report) -> None:
        self.cases += 1
        self.kinds.update(report.kinds)
        self.notes.update(report.notes)
        for command, code, seconds, size in report.answers:
            self.codes.setdefault(command, Counter())["ended by us" if code is None else str(code)] += 1
            self.slowest = max(self.slowest, (seconds, report.index, command))
            self.largest = max(self.largest, (size, report.index, command))
        if report.failures:
            self.failed.append(report.index)

    def lines(self) -> Iterator[str]:
        calls = sum(sum(codes.values()) for codes in self.codes.values())
        yield f"{self.cases} cases, {calls} calls, {len(self.failed)} failed"
        for command in sorted(self.codes):
            codes = self.codes[command]
            yield f"  {command:<20} {', '.join(f'exit {code}: {codes[code]}' for code in sorted(codes))}"
        yield f"  what was done: {', '.join(f'{kind} {count}' for kind, count in sorted(self.kinds.items()))}"
        for note, count in sorted(self.notes.items()):
            yield f"  {note}: {count}"
        yield f"  slowest call: {self.slowest[0]:.2f} s (case {self.slowest[1]}, {self.slowest[2]})"
        yield f"  most memory: {self.largest[0] / 1e6:.0f} MB (case {self.largest[1]}, {self.largest[2]})"


Run = Callable[[Task], Report]


def parser(description: str | None, count: int) -> argparse.ArgumentParser:
    """Return the parser of what all modes share."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--count", type=int, default=count, help=f"how many cases (default: {count})")
    made.add_argument("--seed", type=int, default=0, help="seed of all cases (default: 0)")
    made.add_argument("--first", type=int, default=0, help="number of the first case (default: 0)")
    made.add_argument("--only", type=int, metavar="N", help="this case alone; its files are kept")
    made.add_argument("--seconds", type=float, metavar="S", help="stop after so many seconds (default: when all are done)")
    made.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one per CPU)")
    made.add_argument("--keep", type=Path, metavar="DIR", help="where files of failed cases go (default: a new folder)")
    return made


def run_all(run: Run, options: argparse.Namespace, again: str, sources: Path | None = None) -> int:
    """Run the cases that the options ask for and return the exit code; `again`: the command that repeats one, up to `--only`."""
    first, count = (options.only, 1) if options.only is not None else (options.first, options.count)
    keep = options.keep or Path(tempfile.mkdtemp(prefix="tuneoff-fuzz-"))
    keep.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    totals = Totals()
    tasks = [
        Task(seed=options.seed, index=index, folder=keep / f"case-{index}", keep=options.only is not None, sources=sources)
        for index in range(first, first + count)
    ]
    context = multiprocessing.get_context("spawn")  # a fresh interpreter: without the threads and the memory of whoever calls
    with ProcessPoolExecutor(options.workers, mp_context=context, initializer=_load) as executor:
        for report in executor.map(run, tasks, chunksize=1):
            totals.add(report)
            if report.failures:
                print(f"FAILED case {report.index}: {report.what}", flush=True)
                for failure in report.failures:
                    print(f"  {failure}")
                print(f"  again: {again} --seed {options.seed} --only {report.index}; its files: {keep / f'case-{report.index}'}")
            elif options.only is not None:
                print(f"case {report.index}: {report.what}\n  {report.answers}\n  its files: {keep / f'case-{report.index}'}")
            if sys.stderr.isatty() and totals.cases % 50 == 0:
                print(f"{totals.cases} of {count}", end="\r", file=sys.stderr, flush=True)
            if options.seconds is not None and time.monotonic() - started > options.seconds:
                print(f"stopped after {totals.cases} of {count} cases: {options.seconds:g} s are over", flush=True)
                executor.shutdown(cancel_futures=True)
                break
    print("\n".join(totals.lines()))
    print(f"  seed {options.seed}, cases {first} to {first + count - 1}, {time.monotonic() - started:.0f} s")
    if not any(keep.iterdir()):
        keep.rmdir()
    return 1 if totals.failed else 0


def _load() -> None:
    """Import what the cases need, once: each is a fork of its worker."""
    from tuneoff.cli.main import main

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        for file in ("digits", "pruning"):
            main(["plan", str(ROOT / "benchmarks" / f"{file}.yaml")])
    reports = ("judge.summary", "tell.report.export", "tell.report.table", "tell.report.declared")
    for module in (*reports, "run.execute", "trust.verify.results", "trust.bundle.pack", "trust.bundle.reproduce"):
        importlib.import_module(f"tuneoff.{module}")


def in_place(task: Task, act: Callable[[Place, random.Random], Report]) -> Report:
    """Do a case in its own folder, which stays only where the case failed or is asked for."""
    make_removable(task.folder)
    shutil.rmtree(task.folder, ignore_errors=True)
    place = Place.make(task.folder)
    report = act(place, task.chance)
    if not (report.failures or task.keep):
        make_removable(task.folder)
        shutil.rmtree(task.folder, ignore_errors=True)
    return report


def make_removable(folder: Path) -> None:
    """Give back the permissions that a case took from its folders."""
    for path, names, _ in os.walk(folder):
        for name in names:
            if not os.path.islink(os.path.join(path, name)):
                os.chmod(os.path.join(path, name), 0o700)
