"""Share independent tasks among processes where that pays, and do without them where it cannot be."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from tuneoff.base.process_limits import die_with_parent

T = TypeVar("T")
R = TypeVar("R")

MOST_PROCESSES = 8
LEAST_TASKS = 16  # fewer are done before processes have started
CHUNK = 4  # tasks that are handed over at once
LARGE_BYTES = 50_000_000  # of a task's input: such tasks are done one at a time, for memory


def run_all(
    work: Callable[[T], R],
    tasks: Sequence[T],
    sizes: Sequence[int],
    progress: Callable[[int, int], None] | None = None,
    processes: int | None = None,
) -> list[R]:
    """Return `work` of each task, in their order. `work` must be importable by other processes, and end in a result.

    `sizes`: bytes of each task's input. Tasks that a process took with it when it died are done again, in this process.
    """
    report = progress or (lambda done, total: None)
    results: dict[int, R] = {}
    places = [place for place, size in enumerate(sizes) if size < LARGE_BYTES]
    count = min(processes, len(places)) if processes is not None else usable_processes(len(places))
    report(0, len(tasks))
    if count > 1:
        with contextlib.suppress(BrokenProcessPool, OSError):  # one was killed, or none can be started: the rest is done here
            for place, result in zip(places, _in_processes(work, [tasks[place] for place in places], count), strict=True):
                results[place] = result
                report(len(results), len(tasks))
    for place, task in enumerate(tasks):
        if place not in results:
            results[place] = work(task)
            report(len(results), len(tasks))
    return [results[place] for place in range(len(tasks))]


def usable_processes(tasks: int) -> int:
    """Return how many processes share so many tasks where nobody asks for a number."""
    if tasks < LEAST_TASKS:
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_PROCESSES, tasks // CHUNK)


def _in_processes(work: Callable[[T], R], tasks: Sequence[T], count: int) -> Iterator[R]:
    """Yield what `work` returns of each task, in their order."""
    # fork is fast, and safe while there is no other thread; else a new interpreter for each
    has_fork = "fork" in multiprocessing.get_all_start_methods() and threading.active_count() == 1
    context = multiprocessing.get_context("fork" if has_fork else "spawn")
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield from executor.map(work, tasks, chunksize=CHUNK)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin(parent: int) -> None:
    """Die with the parent; on Ctrl-C at once and without a word: the parent says it."""
    die_with_parent(parent=parent)
    signal.signal(signal.SIGINT, lambda number, frame: os._exit(1))
