"""CPU time of the host and of the run's processes as the sampler saw them, by what they are.

A process's `children_cpu_ns` grows by a child's whole time when it waits for it. What the child was seen to use is known
by then; the rest is the child's last moments, or a child that came and went between two samples.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tuneoff.measure.attribution.attempts import LONGEST_GAP_NS, Reading, Sampled, attempts_by_process
from tuneoff.measure.attribution.pieces import TimePiece
from tuneoff.measure.spans import ProcessKey, process_key
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import LATE, ProcessUsage, UsageSample

PARTS = ("services", "others")  # the framework's processes that do not train, and the test; what is not the run's
SUITE, COORDINATOR, SERVICE, TESTING = "suite", "coordinator", "service", "test"  # what a process does that does not train
ROLES = (SUITE, COORDINATOR, SERVICE, TESTING)
TEST: ProcessKey = (-1, -1)  # the test's own process, until it is seen
GRAIN_NS = 20_000_000  # of CPU times that the kernel tells in clock ticks: two of them


@dataclass(frozen=True, slots=True)
class TreeUse:
    """What the sampler saw. `node`: CPU time of the whole host; `sampled`: when it looked, and the processes that train."""

    sampled: Sampled = field(default_factory=Sampled)
    parts: dict[str, list[TimePiece]] = field(default_factory=lambda: {name: [] for name in PARTS})
    node: list[TimePiece] = field(default_factory=list)
    owners: dict[int, list[tuple[int, str]]] = field(default_factory=dict)  # by pid: (first seen, process that trains, or part)
    saw_coordinator: bool = False
    others_ns: list[int] = field(default_factory=list)  # at `sampled.times`: what nobody of the run has used on its processors


def tree_use(run: RunRecord, samples: Samples) -> TreeUse:
    """Return the CPU time of the run's processes and of the host by the samples; empty without samples of use."""
    if not samples.usage:
        return TreeUse()
    reader = _TreeReader(run, samples)
    for sample in samples.usage:
        reader.take(sample)
    return reader.finish()


class _SeenProcess:
    """A process at its last sight. `owner`: one of `ROLES`, or the name of a process that trains, to which it belongs."""

    __slots__ = ("children", "cpu", "key", "owner", "parent", "seen_ns")

    def __init__(self, usage: ProcessUsage) -> None:
        self.key: ProcessKey = (usage.pid, usage.started_ns)
        self.parent = usage.parent
        self.cpu = self.children = 0
        self.owner = ""
        self.seen_ns: int | None = None

    @property
    def total(self) -> int:
        return self.cpu + self.children


class _TreeReader:
    """Goes through the samples once."""

    def __init__(self, run: RunRecord, samples: Samples) -> None:
        self._run, self._host, self._cpus = run, samples.header.host, samples.header.cpus
        trained = {
            key: (name, [attempt for _, attempt in items])
            for name, items in attempts_by_process(run).items()
            if (key := process_key(name, self._host)) is not None
        }
        self._trained = {key: name for key, (name, _) in trained.items()}
        for process in run.without_attempt:
            if (key := process_key(process.process, self._host)) is not None:
                self._trained[key] = process.process
        self._last_readings: dict[ProcessKey, Reading] = {}  # when its last attempt ended, and what it had used till then
        for key, (_, attempts) in trained.items():
            for attempt in attempts:
                used = attempt.cpu_ns
                if used is None:
                    readings = (
                        cpu for epoch in attempt.epochs for cpu in (epoch.cpu_ns, epoch.reported_cpu_ns) if cpu is not None
                    )
                    used = max(readings, default=0)
                if attempt.process_cpu_ns is not None and attempt.ended_ns is not None:
                    self._last_readings[key] = attempt.ended_ns, attempt.process_cpu_ns + used
        self._coordinators = {key for name in run.coordinators if (key := process_key(name, self._host)) is not None}
        self._supervisor = process_key(samples.header.supervisor, self._host)
        step, end = run.step("test"), None
        if step is not None:
            end = step.ended_ns if step.ended_ns is not None else run.test.tested_ns if run.test is not None else None
        self._test = (step.started_ns, end) if step is not None and end is not None else None
        if self._test is not None and run.test is not None and run.test.cpu_ns is not None:
            self._last_readings[TEST] = self._test[1], run.test.cpu_ns
        self._start_ns = run.clock.start_monotonic_ns if run.clock is not None else 0
        self._seen: dict[int, _SeenProcess] = {}
        self._awaited: dict[int, list[_SeenProcess]] = {}  # gone children, by the parent that will wait for them
        # popped from the end
        self._unseen = sorted(((when, key) for key, (when, _) in self._last_readings.items()), reverse=True)
        self._credit = 0  # CPU time of processes that train and were never seen: part of some parent's children
        self._readings: dict[str, list[Reading]] = {}
        self._members: dict[str, dict[int, _SeenProcess]] = {}  # living processes of each process that trains, itself included
        longest_gap_ns = max(LONGEST_GAP_NS, LATE * samples.header.interval_ns)
        times = [sample.t for sample in samples.usage]
        self._use = TreeUse(sampled=Sampled(self._host, times, self._readings, longest_gap_ns))
        self._before: UsageSample | None = None
        self._debt = 0  # of `others`: what was negative so far
        self._tested_ns = 0  # CPU time of the test that was seen
        self._ever: set[ProcessKey] = set()

    def take(self, sample: UsageSample) -> None:
        before = self._before
        since = before.t if before is not None else sample.t
        tree = suite = 0
        touched: set[str] = set()
        for pid, started in sample.gone:
            gone = self._seen.get(pid)
            if gone is not None and gone.key[1] == started:
                del self._seen[pid]
                gone.seen_ns = since  # it has not changed up to the sample before
                if gone.owner in self._members:
                    self._members[gone.owner].pop(pid, None)
                self._awaited.setdefault(gone.parent, []).append(gone)
        for usage in sample.processes:
            if usage.pid not in self._seen or self._seen[usage.pid].key[1] != usage.started_ns:
                self._enter(usage, sample.t)
        grown: list[tuple[_SeenProcess, int]] = []
        for usage in sample.processes:
            process = self._seen[usage.pid]
            used, waited = usage.cpu_ns - process.cpu, usage.children_cpu_ns - process.children
            is_first, is_supervisor = process.seen_ns is None, process.key == self._supervisor
            process.cpu, process.children = usage.cpu_ns, usage.children_cpu_ns
            process.parent, process.seen_ns = usage.parent, sample.t
            if before is not None:  # what the supervising process waited for is the tree's, what it used itself is not
                tree += waited if is_supervisor else used + waited
            if waited > 0 and not (is_first and is_supervisor):
                grown.append((process, waited))
            if is_supervisor:
                suite += 0 if is_first else used
            elif process.owner in self._members:
                touched.add(process.owner)
            else:
                born = min(sample.t - 1, usage.started_ns - self._start_ns) if is_first else since
                self._add(process.owner, born if before is None else max(since, born), sample.t, used)
        for process, waited in grown:
            tree -= self._settle(process, waited, since, sample.t)
        for name in touched:
            self._append(name, since, sample.t, sum(member.total for member in self._members[name].values()))
        if before is None:
            self._use.others_ns.append(0)
        else:
            self._count(before, sample, tree, suite if self._supervisor in self._ever else None)
        self._before = sample

    def finish(self) -> TreeUse:
        """Return what was found, with the test's own reading of its clock."""
        test, window = self._run.test, self._test
        if test is not None and test.cpu_ns is not None and window is not None:
            self._add(TESTING, window[0], max(window[0] + 1, window[1]), test.cpu_ns - self._tested_ns)
        return replace(self._use, saw_coordinator=bool(self._coordinators & self._ever))

    def _enter(self, usage: ProcessUsage, t: int) -> None:
        process = _SeenProcess(usage)
        for awaited in self._awaited.values() if process.key in self._ever else ():  # it could not be read for a moment
            earlier = next((earlier for earlier in awaited if earlier.key == process.key), None)
            if earlier is not None:
                awaited.remove(earlier)
                process = earlier
                break
        self._seen[usage.pid] = process
        self._ever.add(process.key)
        process.owner = process.owner or self._owner(process, usage)
        if process.owner not in ROLES:
            self._members.setdefault(process.owner, {})[usage.pid] = process
        self._use.owners.setdefault(usage.pid, []).append((t, _part(process.owner) if process.owner in ROLES else process.owner))

    def _owner(self, process: _SeenProcess, usage: ProcessUsage) -> str:
        if process.key in self._trained:
            return self._trained[process.key]
        if process.key in self._coordinators:
            return COORDINATOR
        if process.key == self._supervisor:
            return SUITE
        parent = self._seen.get(usage.parent)
        if parent is None:
            return SERVICE
        if parent.owner == COORDINATOR:
            started = usage.started_ns - self._start_ns
            if self._test is None or not self._test[0] - GRAIN_NS <= started <= self._test[1]:
                return SERVICE
            self._ever.add(TEST)
            if TEST in self._last_readings:
                self._last_readings[process.key] = self._last_readings[TEST]
            return TESTING
        return parent.owner if parent.owner == TESTING or parent.owner in self._members else SERVICE

    def _settle(self, parent: _SeenProcess, waited: int, since: int, t: int) -> int:
        """Take apart what a process's waited-for children grew by: known children, their last moments, unknown children.

        Return what had been counted before, when these children lived.
        """
        done: list[_SeenProcess] = []
        rest = self._consume(parent.key[0], waited, done)
        counted = sum(child.total for child in done)
        if parent.owner in self._members:
            return counted  # all of it belongs to the process that trains, whoever used it
        for child in done:  # its last moments: at most all processors since it was looked at last
            begin = child.seen_ns if child.seen_ns is not None else since
            last = max(0, min(rest, (t - begin) * self._cpus))
            rest -= last
            if child.owner in self._members:
                seen = self._readings[child.owner][-1][1] if self._readings.get(child.owner) else 0
                self._append(child.owner, begin, t, max(seen, self._used_ns(child)) + last)
            else:
                self._add(child.owner, begin, t, last + self._used_ns(child) - child.total)
        while self._unseen and self._unseen[-1][0] <= t:
            key = self._unseen.pop()[1]
            self._credit += self._last_readings[key][1] if key not in self._ever else 0
        credit = max(0, min(rest, self._credit))
        self._credit -= credit
        self._add(parent.owner, since, t, rest - credit)
        return counted

    def _consume(self, pid: int, waited: int, done: list[_SeenProcess]) -> int:
        """Move to `done` the gone children of a process that are in `waited`; return what is left of it.

        A child that is gone itself may have waited for its own children after the last look at it.
        """
        for child in list(self._awaited.get(pid, ())):
            used = self._used_ns(child)
            if waited + GRAIN_NS >= used:
                self._awaited[pid].remove(child)
                done.append(child)
                waited = self._consume(child.key[0], waited - used, done)
        return waited

    def _used_ns(self, process: _SeenProcess) -> int:
        """Return what a gone process is known to have used: as it was seen, or by its own last reading."""
        return max(process.total, self._last_readings[process.key][1]) if process.key in self._last_readings else process.total

    def _append(self, name: str, since: int, t: int, total: int) -> None:
        """Add a reading of a process that trains, unchanged up to `since`."""
        readings = self._readings.setdefault(name, [])
        last, before = readings[-1] if readings else (since - 1, 0)
        if total <= before and readings:
            return
        if t == last:
            readings.pop()
        elif since > last:
            readings.append((since, before))
        readings.append((t, total))

    def _add(self, owner: str, start: int, end: int, cpu: int) -> None:
        if cpu > 0 and end > start:
            self._use.parts[_part(owner)].append(TimePiece(start, end, cpu))
            self._tested_ns += cpu if owner == TESTING else 0

    def _count(self, before: UsageSample, sample: UsageSample, tree: int, suite: int | None) -> None:
        """Count the host's time of an interval, and what of it nobody of the run used."""
        start, end = before.t, sample.t
        busy = max(0, sample.busy_ns - before.busy_ns)
        if busy:
            self._use.node.append(TimePiece(start, end, busy))
        if suite is None:  # the supervising process was not looked at, its sampling thread alone
            suite = max(0, sample.own_cpu_ns - before.own_cpu_ns)
        usable = _usable_busy_ns(sample) - _usable_busy_ns(before)
        self._use.others_ns.append(self._use.others_ns[-1] + usable - tree - suite)  # with its sign: ticks may lag behind
        self._debt += busy - tree
        if self._debt > 0:
            self._add(SUITE, start, end, self._debt)
            self._debt = 0


def _part(role: str) -> str:
    return "others" if role == SUITE else "services"


def _usable_busy_ns(sample: UsageSample) -> int:
    return sample.usable_busy_ns if sample.usable_busy_ns is not None else sample.busy_ns
