"""Check a run's overhead and idle slot time against a second reading of its events, and against processes seen from outside.

For each case and run: `tuneoff run` in a folder of its own, while a watcher that knows nothing of tuneoff but the command lines
of its trials' processes looks through /proc every 5 ms for those that descend from the command. Three figures of each kind:

- record: `slots.overhead` and `slots.idle` of run.json;
- events: from the raw lines of the event files, read here without `tuneoff.measure` and `tuneoff.record`;
- outside: the same busy time and window, but with the starts (/proc/PID/stat) and exits that the watcher saw.

Record and each of the others must agree within max(2 %, 10 ms per process). The control of each run: all its processes booked
on one slot, as it was done once, must not agree. Prints a line per run; exit code 0 if all agree and each control differs.

    python tests/e2e/slot_presence.py --runs 5 --load 0 4
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Interval = tuple[int, int]
CASES: dict[str, tuple[str, dict[str, Any], int, int]] = {  # adapter, workload, trials, epochs
    "syne-tune-digits": ("syne-tune", {"name": "mnist_mlp", "options": {"dataset": "digits"}}, 4, 3),
    "syne-tune-null": ("syne-tune", {"name": "null"}, 12, 1),
    "katib-digits": ("katib@emulated", {"name": "mnist_mlp", "options": {"dataset": "digits"}}, 4, 3),
    "katib-null": ("katib@emulated", {"name": "null"}, 12, 1),
}
WORKERS = 2
LOOK_SECONDS = 0.005
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
RELATIVE, PER_PROCESS_NS = 0.02, 10_000_000
PROGRAMS = {b"tuneoff.run.trial", b"tuneoff_adapters.katib.pod"}
ONE_TRIAL = ("trial", "pod")  # roles of processes that run one trial and exit


@dataclass(frozen=True)
class Booked:
    """Slot time in ns within the slot window."""

    overhead: int
    idle: int
    processes: int


@dataclass(frozen=True)
class Raw:
    """What the event files of one execution say, on the monotonic clock in ns."""

    window: Interval
    busy: list[Interval]
    present: list[Interval]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each case under each load (default: 5)")
    parser.add_argument("--load", type=int, nargs="+", default=[0, 4], help="busy processes beside (default: 0, then 4)")
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="default: all")
    options = parser.parse_args(arguments)
    print("overhead / idle in ms of slot time; they must agree within max(2 %, 10 ms per process), the control must not")
    print(f"{'case':17} load run procs {'record':>15} {'events':>15} {'outside':>15} {'control':>15}  verdict")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="slot-presence-") as folder:
        for load in options.load:
            with busy_processes(load):
                for name in options.cases:
                    for number in range(options.runs):
                        failed += not one_run(name, load, number, Path(folder) / f"{name}-{load}-{number}")
    print(f"{failed} runs failed" if failed else "all runs agree, and each control was found")
    return 1 if failed else 0


def one_run(name: str, load: int, seed: int, output: Path) -> bool:
    """Make a run, print its line, and tell whether it agrees and its control does not."""
    adapter, workload, trials, epochs = CASES[name]
    file = output.with_suffix(".yaml")
    budget = {"trials": trials, "epochs_per_trial": epochs}
    text = {"name": "presence", "workload": workload, "budget": budget, "workers": {"count": WORKERS, "cpus": 1}}
    file.write_text(json.dumps(text))  # which is YAML
    command = [sys.executable, "-m", "tuneoff", "run", str(file), "--adapter", adapter, "--seed", str(seed)]
    with output.with_suffix(".txt").open("wb") as log:
        process = subprocess.Popen([*command, "--output", str(output)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        with Watcher(process.pid) as watcher:
            code = process.wait()
    if code != 0:
        print(f"{name:17} {load:4} {seed:3} exit code {code}: {output.with_suffix('.txt').read_text()[-2000:]}")
        return False
    (folder,) = (path.parent for path in output.glob("runs/*/*/run.json"))
    record, raw = recorded(folder), read_events(folder)
    events, outside = booked(raw, raw.present, WORKERS), booked(raw, watcher.seen, WORKERS)
    control = on_one_slot(raw, WORKERS)
    agrees = differing(record, events) == differing(record, outside) == []
    found = differing(record, control) != []
    verdict = "pass" if agrees and found else "FAIL" if found else "FAIL (the control was not found)"
    figures = " ".join(f"{one.overhead / 1e6:7.0f}/{one.idle / 1e6:7.0f}" for one in (record, events, outside, control))
    print(f"{name:17} {load:4} {seed:3} {outside.processes:5} {figures}  {verdict}", flush=True)
    return agrees and found


def recorded(folder: Path) -> Booked:
    """Return what the record of an execution says."""
    run = json.loads((folder / "run.json").read_text())
    overhead, idle = (round(run["metrics"][f"slots.{name}"]["value"] * 1e9) for name in ("overhead", "idle"))
    attempts = [attempt for trial in run["trials"] for attempt in trial["attempts"]]
    return Booked(overhead, idle, len({attempt["process"] for attempt in attempts}) + len(run["without_attempt"]))


def read_events(folder: Path) -> Raw:
    """Read the event files of one host; every attempt must have its own end, and every process runs at most one."""
    files = [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.glob("events/*.jsonl"))]
    everything = [event for events in files for event in events]
    exits: dict[str, int] = {}
    for event in everything:
        if event["type"] == "process_exited":
            exits[event["process"]] = min(event["t"], exits.get(event["process"], event["t"]))
    deployed = [event["t"] for event in everything if event["type"] == "step_ended" and event["step"] == "deploy"]
    best = [event["t"] for event in everything if event["type"] == "best_known"]
    busy: list[Interval] = []
    present: list[Interval] = []
    for events in files:
        header = events[0]
        if header["role"] not in ONE_TRIAL:
            continue
        last = _busy(events, busy)
        name = f"{header['host']}:{header['pid']}:{header['process_started_ns']}"
        present.append((header["process_started_ns"], max(exits.get(name, last), last)))
    return Raw((deployed[-1], best[-1]), busy, present)


def _busy(events: Sequence[dict[str, Any]], busy: list[Interval]) -> int:
    """Add the busy time of one process, which is not busy while it waits in a report; return the time of its last word."""
    since, last = None, 0
    for event in events:
        if event["type"] in ("trial_started", "reported"):
            since = event["t"]
        elif since is not None and (
            event["type"] == "trial_ended" or (event["type"] == "epoch" and event.get("is_reported", True))
        ):
            busy.append((since, event["t"]))
            since = None
        if event["type"] in ("process", "refused", "reported", "trial_ended"):
            last = event["t"]
    return last


def booked(raw: Raw, present: Sequence[Interval], workers: int) -> Booked:
    """Book min(workers, present processes) slots at every moment, what is not busy as overhead."""
    start, end = raw.window
    occupied = area(present, raw.window, workers)
    overhead = occupied - area(raw.busy, raw.window, len(raw.busy))
    return Booked(overhead, workers * (end - start) - occupied, len(present))


def on_one_slot(raw: Raw, workers: int) -> Booked:
    """Book all processes on one slot: the planted fault."""
    start, end = raw.window
    occupied = area(raw.present, raw.window, 1)
    return Booked(occupied - area(raw.busy, raw.window, 1), workers * (end - start) - occupied, len(raw.present))


def area(intervals: Sequence[Interval], window: Interval, most: int) -> int:
    """Return the integral of min(most, intervals that are there) over a window."""
    moves = [move for start, end in intervals for move in ((start, 1), (end, -1))]
    total = there = 0
    before = window[0]
    for when, move in sorted(moves):
        at = min(max(when, window[0]), window[1])
        total += min(most, there) * (at - before)
        before, there = at, there + move
    return total


def differing(record: Booked, other: Booked) -> list[str]:
    """Return which of two figures are further apart than is allowed."""
    found = []
    for name in ("overhead", "idle"):
        mine, theirs = getattr(record, name), getattr(other, name)
        if abs(mine - theirs) > max(RELATIVE * theirs, PER_PROCESS_NS * other.processes):
            found.append(name)
    return found if record.processes == other.processes else [*found, "processes"]


@dataclass
class Watcher:
    """Notes, while it is entered, when the trials' processes that descend from a process started and were gone."""

    root: int
    seen: list[Interval] = field(default_factory=list)
    family: set[int] = field(default_factory=set)
    trials: set[int] = field(default_factory=set)  # whose children have their command line for a moment
    _watched: dict[int, int] = field(default_factory=dict)  # start by pidfd
    _is_over: bool = False

    def __enter__(self) -> Watcher:
        self.family.add(self.root)
        self._poll = select.poll()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        known: set[int] = set()
        while not self._is_over or self._watched:
            pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            for pid in sorted(pids - known):
                if self._look(pid):
                    known.add(pid)
            known &= pids
            self._wait(LOOK_SECONDS)

    def _look(self, pid: int) -> bool:
        """Watch a process if it is a trial's; tell whether that is settled (right after a fork it has its parent's name)."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            descriptor = os.pidfd_open(pid)
        except OSError:
            return True  # it is gone
        fields = stat[stat.rindex(")") + 2 :].split()
        started_ns = int(fields[19]) * TICK_NS
        if int(fields[1]) in self.family:
            self.family.add(pid)
        if pid in self.family and int(fields[1]) not in self.trials and is_trial(command):
            self.trials.add(pid)
            self._watched[descriptor] = started_ns
            self._poll.register(descriptor, select.POLLIN)
            return True
        os.close(descriptor)
        return pid not in self.family or time.monotonic_ns() - started_ns > 2_000_000_000

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(left * 1000):
                self.seen.append((self._watched.pop(descriptor), time.monotonic_ns()))
                self._poll.unregister(descriptor)
                os.close(descriptor)


def is_trial(command: Sequence[bytes]) -> bool:
    """Tell by its command line whether a process runs one trial (`--test` scores the best one afterwards)."""
    return bool(PROGRAMS & set(command)) and b"--test" not in command


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep so many processes busy beside."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
