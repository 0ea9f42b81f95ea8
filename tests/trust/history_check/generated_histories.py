"""Sound histories, by a simulation of a run: workers, failures, deaths, retries, restored checkpoints, stops, refusals, kills.

It knows of events what their schema says, and nothing of who checks them.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from builders.event_logs import Log, Writer
from builders.specs import make_spec
from tuneoff.experiment.spec import Budget, Failures, RunSpec, Workers
from tuneoff.record.events import schema
from tuneoff.record.events.schema import Event, Process

Pairs = list[tuple[Process, Event]]


@dataclass(slots=True)
class Task:
    """An attempt that is to be run."""

    trial: str
    x: float
    attempt: int = 1
    kept: int = 0  # epochs that the attempts before it trained
    trained: int = 0


@dataclass(slots=True)
class GeneratedRun:
    """A run's specification, its events, and whether it came to its end."""

    spec: RunSpec
    pairs: Pairs
    is_done: bool


class Simulation:
    """One run. `events`: about how many it may have."""

    def __init__(self, seed: int, events: int = 10_000) -> None:
        self.random = rng = random.Random(seed)
        self.epochs = rng.choice((1, 2, 3, 5, 9))
        most = max(1, events // (2 * self.epochs + 6))
        self.trials = max(1, round(most ** rng.uniform(0.2, 1.0)))
        self.workers = min(rng.choice((1, 2, 3, 4, 8, 16)), self.trials)
        self.retries = rng.choice((0, 0, 1, 1, 2, 3))
        self.style = rng.choice(("pool", "process", "pod", "pod-worker"))
        self.rates = {name: rng.choice((0.0, 0.0, 0.05, 0.3)) for name in ("prune", "fail", "die", "unstarted", "kill", "stop")}
        self.restores = random.Random(f"restores {seed}").random() < 0.5
        each = random.Random(f"devices {seed}").choice((0, 0, 1, 2))  # slots of a device; 0: there are none
        each = each if each and self.style != "pod" and self.workers % each == 0 else 0
        devices = tuple(range(self.workers // each, 0, -1)) if each else ()
        self.ends_early = random.Random(f"ends early {seed}").random() < 0.3
        self.asks_more = rng.choice((0, 0, 1, 3))
        is_fixed = rng.random() < 0.4
        points = [rng.choice((rng.random(), 0.5)) if rng.random() < 0.1 else rng.random() for _ in range(self.trials)]
        self.seconds = rng.choice((None, None, None, rng.uniform(1.0, 3.0 * self.trials * self.epochs / self.workers)))
        self.points = points
        self.spec = make_spec(
            sampler="fixed" if is_fixed else "random",
            budget=Budget(trials=self.trials, epochs_per_trial=self.epochs, wall_clock_seconds=self.seconds),
            workers=Workers(count=self.workers, devices=devices, per_device=each or 1),
            failures=Failures(retries=self.retries),
            configurations=tuple({"x": x} for x in points) if is_fixed else (),
        )

    def run(self) -> GeneratedRun:
        """Return the run, killed or not."""
        execution = Execution(self)
        execution.simulate()
        reactions = (schema.Stage, schema.BestKnown, schema.Tested)
        length = max((line[0] for line in execution.lines if line[2] not in reactions), default=1.0)
        killed = self.random.uniform(0, 1.2 * length) if self.random.random() < 0.3 else math.inf
        return GeneratedRun(self.spec, execution.pairs(killed), is_done=killed > length + 1)


@dataclass(slots=True)
class Worker:
    """A place for trials; `writer` is its process, None where one must be started."""

    slot: int
    writer: int | None = None


class Execution:
    """One execution: lines are (time, writer, type of event, fields); writer 0 is the coordinator, 1 the supervisor."""

    def __init__(self, run: Simulation) -> None:
        self.run, self.random = run, run.random
        self.lines: list[tuple[float, int, type[Event], dict[str, Any]]] = []
        self.roles: list[tuple[str, float, int]] = [("coordinator", -1.0, 0), ("supervisor", -1.0, 0)]  # role, start, host
        self.proposals = iter([Task(f"t{number:05d}", x) for number, x in enumerate(run.points)])
        self.begun = 0
        self.waiting: list[tuple[float, int, Task]] = []  # retries by the time from which they may be begun

    def write(self, at: float, writer: int, kind: type[Event], **fields: Any) -> None:
        self.lines.append((at, writer, kind, fields))

    def simulate(self) -> None:
        free = [(self.random.random(), place, Worker(place)) for place in range(self.run.workers)]
        heapq.heapify(free)
        extra = self.run.asks_more
        self.write(0.0, 0, schema.StepStarted, step="deploy")
        while free:
            now, place, worker = heapq.heappop(free)
            is_over = self.run.seconds is not None and now > self.run.seconds
            task = heapq.heappop(self.waiting)[2] if self.waiting and self.waiting[0][0] <= now else None
            task = task or (None if is_over else next(self.proposals, None))
            if task is not None:
                heapq.heappush(free, (self._run(worker, task, now), place, worker))
            elif self.waiting:
                heapq.heappush(free, (self.waiting[0][0], place, worker))
            elif extra > 0 and worker.writer is not None:
                extra -= 1
                self._refuse(f"t{len(self.run.points) + extra:05d}", worker.writer, now)
                heapq.heappush(free, (now + 0.1, place, worker))
        completed = [fields["trial"] for _, _, kind, fields in self.lines if kind is schema.Stage]
        if completed:
            end = max(line[0] for line in self.lines)
            self.write(end + 0.1, 0, schema.BestKnown, trial=completed[0])
            self.write(end + 0.2, 0, schema.Tested, trial=completed[0], scores={})

    def _refuse(self, trial: str, writer: int, now: float) -> None:
        if self.run.style == "pod":
            self.write(now, 0, schema.TrialRefused, trial=trial, reason="trials")
        else:
            self.write(now, 0, schema.TrialSubmitted, trial=trial, configuration={"x": self.random.random()})
            self.write(now + 0.01, writer, schema.TrialRefused, trial=trial, reason="trials")

    def _process(self, worker: Worker, now: float) -> int:
        role = {"pool": "worker", "process": "trial"}.get(self.run.style, self.run.style)
        if worker.writer is None or role in ("trial", "pod"):
            self.roles.append((role, now, worker.slot % 3 if role in ("pod", "pod-worker") else 0))
            worker.writer = len(self.roles) - 1
        return worker.writer

    def _happens(self, name: str) -> bool:
        return self.random.random() < self.run.rates[name]

    def _run(self, worker: Worker, task: Task, now: float) -> float:
        """Run an attempt, and return when its worker is free again."""
        who = {"trial": task.trial} if task.attempt == 1 else {"trial": task.trial, "attempt": task.attempt}
        self.begun += 1
        self.write(now, 0, schema.TrialSubmitted, configuration={"x": task.x}, **who)
        if self._happens("unstarted"):
            worker.writer = None
            return self._died(task, who, now + self.random.random())
        process = self._process(worker, now)
        t = now + self.random.uniform(0.001, 0.2)
        self.write(t, process, schema.TrialStarted, slot=worker.slot, x=task.x, **who)
        if self.random.random() < 0.95:
            self.write(t + 0.01, process, schema.TrialLoaded, **who)
        last = 1 + int(1e6 * task.x) % self.run.epochs if self.run.ends_early else self.run.epochs
        stop = self.random.randint(1, last)  # in whose course something may happen
        fate = next((name for name in ("fail", "die", "kill", "prune", "stop") if self._happens(name)), "complete")
        restored = self.random.randint(0, task.kept) if self.run.restores and task.kept else 0
        for epoch in range(1, last + 1):
            t += self.random.uniform(0.1, 1.5) if epoch > restored else 0.02
            if self.run.seconds is not None and t > self.run.seconds + 5:
                return self._ends(process, who, t, "cancelled", epoch - 1, cause="wall-clock budget used up")
            if epoch == stop and fate in ("fail", "die", "kill"):
                break
            taken = {"restored": True} if epoch <= restored else {}
            self.write(t, process, schema.Epoch, epoch=epoch, metrics={}, train_ns=1, validate_ns=1, **taken, **who)
            task.trained += 1
            if epoch == stop and fate == "stop" and epoch < self.run.epochs:  # the coordinator kills what it stops
                self.write(t + 0.1, 0, schema.StopDecided, trial=task.trial, epoch=epoch)
                self.write(t + 0.3, 0, schema.TrialEnded, state="pruned", epochs=epoch, by="coordinator", **who)
                worker.writer = None
                return t + 0.4
            t += 0.01
            is_stopped = epoch == stop and fate == "prune" and epoch < self.run.epochs
            self.write(t, process, schema.Reported, epoch=epoch, stop=is_stopped, **who)
            if is_stopped:
                return self._ends(process, who, t + 0.001, "pruned", epoch)
        if fate == "fail":
            return self._ends(process, who, t, "failed", stop - 1, cause="ValueError", charged="workload")
        if fate in ("die", "kill"):
            worker.writer = None
        if fate == "kill":
            self.write(t, 1, schema.TrialKilled, cause="it took too long", charged="workload", limit="time", **who)
            self.write(t + 0.1, 0, schema.WorkerDied, cause="it took too long", exit_code=-9, **who)
            return t + 0.2
        if fate == "die":
            return self._died(task, who, t)
        if self.random.random() < 0.02:  # its process died between its last report and its end
            worker.writer = None
            return t + 0.1 if last == self.run.epochs else self._died(task, who, t)
        early = {"ended_early": True} if last < self.run.epochs else {}
        return self._ends(process, who, t + 0.001, "completed", last, **early)

    def _ends(self, process: int, who: dict[str, Any], t: float, state: str, epochs: int, **why: Any) -> float:
        self.write(t, process, schema.TrialEnded, state=state, epochs=epochs, **who, **why)
        if self.random.random() < 0.1:  # an observer says it too
            self.write(t + 0.05, 0, schema.TrialEnded, state=state, epochs=epochs, by="coordinator", **who, **why)
        if state == "completed":
            self.write(t + 0.02, 0, schema.Stage, name="tell", duration_ns=1, trial=who["trial"])
        return t + 0.06

    def _died(self, task: Task, who: dict[str, Any], t: float) -> float:
        seen = t + self.random.uniform(0.01, 2.0)
        self.write(seen, 0, schema.WorkerDied, cause="killed by signal 9", exit_code=-9, **who)
        if task.attempt <= self.run.retries:
            retry = Task(task.trial, task.x, task.attempt + 1, kept=max(task.kept, task.trained))
            heapq.heappush(self.waiting, (seen + 0.001, self.begun, retry))
        return seen + 0.001

    def pairs(self, killed: float) -> Pairs:
        """Return what was written until the run was killed: files one after the other, each in its order."""
        log = Log()
        writers: dict[int, Writer] = {0: log.coordinator}
        for at, writer, kind, fields in sorted(self.lines, key=lambda line: line[:2]):
            if at > killed:
                break
            if writer not in writers:
                role, started, host = self.roles[writer]
                place: dict[str, Any] = (
                    {"host": f"node{host}", "boot": f"boot-of-{host}", "clock_shift": 100.0 * host} if host else {}
                )
                writers[writer] = log.process(role, started, pid=1000 + writer, **place)
            if kind is schema.TrialStarted:
                visible = self.run.spec.experiment.workers.device_of(fields["slot"])
                writers[writer].start(
                    fields["trial"], at, fields["slot"], fields.get("attempt", 1), x=fields["x"], visible=visible
                )
            else:
                writers[writer].add(kind, at, **fields)
        return log.pairs(self._order(len(log.writers)))

    def _order(self, count: int) -> Iterator[int]:
        return iter(self.random.sample(range(count), count))


def generate(seed: int, events: int = 10_000) -> GeneratedRun:
    """Return a sound run; the same for the same seed."""
    return Simulation(seed, events).run()
