"""A run's overhead and idle slot time against a second reading of its events, and against processes seen from outside.

A watcher that knows nothing of tuneoff but the command lines of its trials' processes looks through /proc every 5 ms for those
that descend from the command. Three figures of each kind:

- record: `slots.overhead` and `slots.idle` of run.json;
- events: from the raw lines of the event files, read here without `tuneoff.measure` and `tuneoff.record`;
- outside: the same busy time and window, but with the starts (/proc/PID/stat) and exits that the watcher saw.

Record and each of the others must agree within max(2 %, 10 ms per process). The control of each run: all its processes booked
on one slot, as it was done once, must not agree.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from builders.event_logs import example_c
from builders.stored import write_run
from command_line import write_file
from tuneoff.measure.derived import derive_folder
from waiting import until

Interval = tuple[int, int]
WORKERS = 2
LOOK_SECONDS = 0.005
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
RELATIVE, PER_PROCESS_NS = 0.02, 10_000_000
PROGRAMS = {b"tuneoff.run.trial", b"tuneoff_adapters.katib.pod"}
ONE_TRIAL = ("trial", "pod")  # roles of processes that run one trial and exit
CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()', *sys.argv[1:]])"


class Booked(NamedTuple):
    """Slot time in ns within the slot window."""

    overhead: int
    idle: int
    processes: int


class Raw(NamedTuple):
    """What the event files of one execution say, on the monotonic clock in ns."""

    window: Interval
    busy: list[Interval]
    present: list[Interval]


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
        if header["role"] in ONE_TRIAL:
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


def booked(raw: Raw, present: Sequence[Interval], slots: int = WORKERS) -> Booked:
    """Book min(slots, present processes) slots at every moment, what is not busy as overhead."""
    start, end = raw.window
    occupied = area(present, raw.window, slots)
    return Booked(occupied - area(raw.busy, raw.window, slots), WORKERS * (end - start) - occupied, len(present))


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


class Watcher:
    """Notes, while it is entered, when the trials' processes that descend from a process started and were gone."""

    def __init__(self, root: int) -> None:
        self.family, self.seen = {root}, list[Interval]()
        self.trials: set[int] = set()  # whose children have their command line for a moment
        self._watched: dict[int, int] = {}  # start by pidfd
        self._is_over = False
        self._poll = select.poll()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over = True
        self._thread.join()

    def _watch(self) -> None:
        known: set[int] = set()
        while not self._is_over or self._watched:
            pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            known = {pid for pid in sorted(pids) if pid in known or self._look(pid)}
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
        is_trial = bool(PROGRAMS & set(command)) and b"--test" not in command  # which scores the best one afterwards
        if pid in self.family and int(fields[1]) not in self.trials and is_trial:
            self.trials.add(pid)
            self._watched[descriptor] = started_ns
            self._poll.register(descriptor, select.POLLIN)
            return True
        os.close(descriptor)
        return pid not in self.family or time.monotonic_ns() - started_ns > 2_000_000_000

    def _wait(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(left * 1000):
                self.seen.append((self._watched.pop(descriptor), time.monotonic_ns()))
                self._poll.unregister(descriptor)
                os.close(descriptor)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an execution's folder with worked example C."""
    log, spec = example_c()
    log.save(tmp_path / "events")
    write_run(tmp_path, derive_folder(tmp_path, spec).record)
    return tmp_path


def test_the_record_of_worked_example_c_agrees_with_its_events_and_a_changed_one_or_a_booking_on_one_slot_does_not(
    folder: Path,
) -> None:
    record, raw = recorded(folder), read_events(folder)
    right = booked(raw, raw.present)
    assert record == (30_400_000_000, 9_200_000_000, 4)
    assert differing(record, right) == []
    assert differing(record, booked(raw, raw.present, slots=1)) == ["overhead", "idle"]
    for factor, found in ((1.019, []), (1.021, ["overhead"])):  # 10 ms per process are less than 2 %
        assert differing(record._replace(overhead=round(record.overhead * factor)), right) == found


@pytest.mark.parametrize(("words", "count"), [(["tuneoff.run.trial"], 1), (["tuneoff.run.trial", "--test"], 0), (["pass"], 0)])
def test_the_watcher_sees_the_trials_processes_below_a_command_from_their_start_to_their_exit(
    words: list[str], count: int
) -> None:
    before = time.monotonic_ns()
    parent = subprocess.Popen([sys.executable, "-c", CHILD, *words], stdin=subprocess.PIPE)
    assert parent.stdin is not None
    with Watcher(parent.pid) as watcher:
        until(lambda: len(watcher.family) >= 2 and len(watcher.trials) >= count)
        released = time.monotonic_ns()
        parent.stdin.close()
        parent.wait()
    after = time.monotonic_ns()
    assert len(watcher.seen) == count
    for start, end in watcher.seen:
        assert before - TICK_NS <= start < released <= end <= after


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ["syne-tune", "katib@emulated"])
def test_a_run_agrees_with_its_events_and_with_its_processes_seen_from_outside(adapter: str, tmp_path: Path) -> None:
    budget = {"trials": 12, "epochs_per_trial": 1}
    file = write_file(tmp_path / "run.yaml", {"workload": "null", "budget": budget, "workers": {"count": WORKERS, "cpus": 1}})
    command = [sys.executable, "-m", "tuneoff", "run", str(file), "--adapter", adapter, "--output", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with Watcher(process.pid) as watcher:
        assert process.wait() == 0
    (folder,) = (path.parent for path in tmp_path.glob("run/runs/*/*/run.json"))
    record, raw = recorded(folder), read_events(folder)
    assert differing(record, booked(raw, raw.present)) == []
    assert differing(record, booked(raw, watcher.seen)) == []
    assert differing(record, booked(raw, raw.present, slots=1)) != []
