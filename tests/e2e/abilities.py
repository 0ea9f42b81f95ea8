"""A training as people write them: its `kind` is what it does to its process; half of them tidy nothing up.

Before a trial does anything it looks whether its process is as a fresh `python abilities.py` finds it, and whether anything of
earlier trials is left. Every process that a trial starts leaves a note with its number and start, for who looks later.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import locale
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

multiprocessing.set_start_method("forkserver", force=True)  # forced, as its children import this file too
PARSER = argparse.ArgumentParser()
PARSER.add_argument("--scale", type=float, default=1.0)
SCALE = PARSER.parse_args().scale

HOME = Path(__file__).parent
NOTES = HOME / "started"
STEPS = 4


def started(pid: int) -> str:
    """Return when a process started, in the kernel's ticks, or "": it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def note(owner: int, pid: int | None = None) -> None:
    """Note that a process works for the trial in process `owner`."""
    pid = pid or os.getpid()
    NOTES.mkdir(exist_ok=True)
    (NOTES / f"{owner}-{started(owner)}-{pid}-{started(pid)}").touch()


def is_left(name: str) -> bool:
    """Tell whether a noted process lives though its trial is over: it was this process's, or one's that has ended."""
    owner, began, pid, start = name.split("-")
    return started(int(pid)) == start and (int(owner) == os.getpid() or started(int(owner)) != began)


def left() -> list[str]:
    """Return the notes of processes that are left, once those had some seconds that were killed with their trial just now."""
    names = [path.name for path in NOTES.iterdir()] if NOTES.exists() else []
    deadline = time.monotonic() + 20
    while (found := [name for name in names if is_left(name)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def differences() -> list[str]:
    """Return what is not as in a fresh process."""
    umask = os.umask(0)
    os.umask(umask)
    looks: dict[str, tuple[Any, Any]] = {
        "folder": (Path.cwd(), HOME),
        "umask": (umask, 0o022),
        "SIGUSR1": (signal.getsignal(signal.SIGUSR1), signal.SIG_DFL),
        "SIGTERM": (signal.getsignal(signal.SIGTERM), signal.SIG_DFL),
        "SIGINT": (signal.getsignal(signal.SIGINT), signal.default_int_handler),
        "locale": (locale.setlocale(locale.LC_NUMERIC), "C"),
        "start method": (multiprocessing.get_start_method(), "forkserver"),
        "arguments": (sys.argv[1:], []),
        "process": (multiprocessing.parent_process(), None),
        "processes left": (left(), []),
    }
    return [f"{name}: {found!r}" for name, (found, fresh) in looks.items() if found != fresh]


def square(number: int, owner: int) -> int:
    note(owner)
    return number * number


def put_square(queue: Any, number: int, owner: int) -> None:
    queue.put(square(number, owner))


def sleep(owner: int) -> None:
    note(owner)
    time.sleep(1000)


class Data:
    """A dataset whose samples are their squares."""

    def __init__(self, owner: int) -> None:
        self.owner = owner

    def __len__(self) -> int:
        return STEPS

    def __getitem__(self, index: int) -> float:
        return float(square(index, self.owner))


def process(owner: int) -> Iterator[float]:
    context = multiprocessing.get_context()
    while True:
        queue = context.Queue()
        for number in range(STEPS):
            context.Process(target=put_square, args=(queue, number, owner)).start()  # never joined
        context.Process(target=sleep, args=(owner,)).start()  # never ended
        yield float(sum(queue.get(timeout=60) for _ in range(STEPS)))


def pool(owner: int) -> Iterator[float]:
    with multiprocessing.Pool(2) as workers:
        while True:
            yield float(sum(workers.starmap(square, [(number, owner) for number in range(STEPS)])))


def executor(owner: int) -> Iterator[float]:
    workers = concurrent.futures.ProcessPoolExecutor(2)  # never shut down
    while True:
        yield float(sum(workers.map(square, range(STEPS), [owner] * STEPS)))


KEPT: dict[str, Any] = {}


def kept(owner: int) -> Iterator[float]:
    """Keep a pool and an executor for all trials of a process."""
    if not KEPT:
        KEPT.update(pool=multiprocessing.Pool(1), executor=concurrent.futures.ProcessPoolExecutor(1))
    while True:
        numbers = KEPT["pool"].map(abs, range(STEPS))
        yield float(sum(number * number for number in KEPT["executor"].map(abs, numbers)))


def manager(owner: int) -> Iterator[float]:
    server = multiprocessing.Manager()
    numbers = server.list()
    while True:
        numbers[:] = [number * number for number in range(STEPS)]
        yield float(sum(numbers))


def loader(owner: int, *, persistent: bool) -> Iterator[float]:
    from torch.utils.data import DataLoader

    data: Any = Data(owner)
    batches: Any = DataLoader(data, batch_size=2, num_workers=2, persistent_workers=persistent, multiprocessing_context="fork")
    while True:
        yield sum(float(batch.sum()) for batch in batches)


def program(owner: int) -> Iterator[float]:
    """Start a program in a session of its own, whose parent ends at once."""
    start = "import subprocess; print(subprocess.Popen(['sleep', '1000'], start_new_session=True, stdout=2).pid)"
    while True:
        note(owner, int(subprocess.run([sys.executable, "-c", start], stdout=subprocess.PIPE, check=True).stdout))
        yield 14.0


def start_method(owner: int) -> Iterator[float]:
    multiprocessing.set_start_method("spawn", force=True)
    while True:
        yield float(multiprocessing.Pool(1).apply(square, (2, owner))) + 10  # let go


def folder(owner: int) -> Iterator[float]:
    os.chdir("/")
    while True:
        yield 14.0


def umask(owner: int) -> Iterator[float]:
    os.umask(0o077)
    while True:
        yield 14.0


def handler(owner: int) -> Iterator[float]:
    caught: list[int] = []
    for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: caught.append(number))
    while True:
        os.kill(os.getpid(), signal.SIGUSR1)
        yield 14.0 * len(caught) / len(caught)


def numbers(owner: int) -> Iterator[float]:
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    while True:
        yield 14.0


def arguments(owner: int) -> Iterator[float]:
    sys.argv.append("--scale=2")
    while True:
        yield 14.0 * SCALE


KINDS: dict[str, Callable[[int], Iterator[float]]] = {
    "process": process,
    "pool": pool,
    "executor": executor,
    "kept": kept,
    "kept_again": kept,
    "kept_once_more": kept,
    "manager": manager,
    "loader": lambda owner: loader(owner, persistent=False),
    "persistent": lambda owner: loader(owner, persistent=True),
    "program": program,
    "start_method": start_method,
    "folder": folder,
    "umask": umask,
    "handler": handler,
    "numbers": numbers,
    "arguments": arguments,
}


def train(configuration: dict[str, Any], seed: int) -> Iterator[dict[str, float]]:
    if found := differences():
        raise RuntimeError(f"not as in a fresh process: {'; '.join(found)}")
    kind = configuration["kind"]
    if kind == "hang":
        multiprocessing.get_context("fork").Process(target=sleep, args=(os.getpid(),)).start()
        next(program(os.getpid()))
        next(process(os.getpid()))
        time.sleep(1000)
    for epoch, value in enumerate(KINDS[kind](os.getpid())):
        if configuration["stopped"] and epoch == 1:
            time.sleep(60)  # where a stop comes later than the next epoch begins, it comes now
        yield {"loss": value / (epoch + 1)}
