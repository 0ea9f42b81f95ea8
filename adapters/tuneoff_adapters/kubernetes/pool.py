"""Core's pool of workers, in pods: a Job for each worker, or for each trial; followed by their logs and a watch on pods."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base import clock
from tuneoff.platform import Death, Message, News, Pool, PoolWork, Ready
from tuneoff.record.events.schema import Epoch, Event, TrialEnded, TrialStarted
from tuneoff.record.events.stream import record_in
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import announce_kill
from tuneoff.run.trial.run_trial import OUT_OF_TIME, TrialOutcome
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff_adapters.kubernetes.api_errors import ApiError, Unreachable
from tuneoff_adapters.kubernetes.checks import Rights
from tuneoff_adapters.kubernetes.clock_skew import PodClock
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import ClusterView, PodObstacle, trial_of, trial_without_pod, waiting_pod
from tuneoff_adapters.kubernetes.endings import PodEnding, PodLimits, ending_of
from tuneoff_adapters.kubernetes.followed_pod import FollowedPod, PodLog
from tuneoff_adapters.kubernetes.layout import CONTAINER, WORKER_MODULE
from tuneoff_adapters.kubernetes.manifest import job_manifest
from tuneoff_adapters.kubernetes.messages import answer_of, packed
from tuneoff_adapters.kubernetes.options import JOBS as JOBS_PLATFORM
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.pod_follower import PodFollower
from tuneoff_adapters.kubernetes.resources import JOBS, PODS, ApiResource, Object, is_running, name_of
from tuneoff_adapters.kubernetes.transport import Input, NoAnswer
from tuneoff_platforms.time_limits import SETUP_SHARE

BEAT_NS = 30 * clock.NANOSECONDS  # between two signs of life to a worker: whoever is silent for long is cut off on the way


@dataclass(slots=True, kw_only=True)
class PodSlot(FollowedPod):
    """A worker's trials come one after the other: what is known of a trial is of the one that runs."""

    index: int  # of its worker
    unsent: list[str] = field(default_factory=list)  # lines for its standard input, until that is there
    input: Input | None = None
    beat_ns: int = 0
    is_ready: bool = False
    answers: list[Any] = field(default_factory=list)  # of a trial's own pod, until that has ended
    trial: str | None = None  # that runs
    last_trial: str | None = None
    attempt: int = 1
    was_cut: bool = False  # its input: it ends after its trial
    problem: str | None = None  # why its input cannot be had

    @property
    def ended_ns(self) -> int | None:
        """When its end was seen first."""
        return self.training_ended_ns or self.gone_ns

    @property
    def is_over(self) -> bool:
        return self.ended_ns is not None and (self.was_log_read or not self.is_log_open)

    def take(self, event: Event, t: int) -> None:
        """Take in an event of its log that came at `t`."""
        if isinstance(event, TrialStarted):
            self.trial = self.last_trial = event.trial
            self.attempt, self.epochs, self.started_ns = event.attempt, 0, t
        elif isinstance(event, Epoch):
            self.epochs = event.epoch
        elif isinstance(event, TrialEnded):
            self.trial = None

    def attach(self, connection: Connection, namespace: str) -> None:
        """Connect to the input of a worker that runs, unless that was done; what fails may be tried again."""
        if self.input is None and not self.was_cut and self.ended_ns is None and is_running(self.pod or {}, CONTAINER):
            try:
                self.input, self.problem = connection.attach(namespace, self.pod_name, CONTAINER), None
            except (Unreachable, ApiError) as error:
                self.problem = str(error)

    def flush(self) -> bool:
        """Write what is due to the input, if that is there, or a sign of life; tell whether it is not cut."""
        now = clock.monotonic_ns()
        if self.input is None or not (self.unsent or now - self.beat_ns > BEAT_NS):
            return True
        try:
            for line in self.unsent or ["\n"]:
                self.input.write(line)
        except NoAnswer:
            self.input.close()
            self.input, self.was_cut = None, True
            return False
        self.unsent.clear()
        self.beat_ns = now
        return True

    def announce(self, context: RunContext, ending: PodEnding) -> None:
        """Note that its trial ends for a limit, so that it is not tried again."""
        assert self.trial is not None
        why = {"charged": ending.charged, "limit": ending.limit}
        announce_kill(context.run_dir, context.events, self.trial, self.attempt, ending.cause, **why)


def obstacles(slots: Collection[PodSlot], warnings: Sequence[Object]) -> list[PodObstacle]:
    """Return every reason that is seen why a place does not get to work."""
    pods = {slot.pod_name: slot.pod for slot in slots if slot.pod is not None}
    jobs: dict[str, Object] = {slot.name: {"metadata": {"name": slot.name}} for slot in slots}
    view = ClusterView(trials=jobs, pods=pods, events=warnings)
    candidates = [waiting_pod(pod, warnings) for pod in pods.values()]
    candidates += [trial_without_pod(job, view) for job in jobs.values()]
    candidates += [
        PodObstacle(f"input of pod {slot.pod_name}", "NoInput", slot.problem, "see its log")
        for slot in slots
        if slot.problem is not None
    ]
    return [obstacle for obstacle in candidates if obstacle is not None]


POOL_RIGHTS: Rights = (
    (JOBS, "", ("create", "list")),
    (PODS, "attach", ("create", "get")),  # which of them depends on the server's version
)


class PodPool(PodFollower[PodSlot], Pool):
    """`owner`: of the Jobs, the config map."""

    def __init__(
        self,
        context: RunContext,
        plan: PodPlan,
        connection: Connection,
        owner: Object,
        pending_seconds: float,
        work: PoolWork,
    ) -> None:
        super().__init__(context, plan, connection, pending_seconds)
        self._plan, self._connection, self._owner = plan, connection, owner
        self._has_job_per_trial = context.spec.platform == JOBS_PLATFORM
        self._kinds, self._observe = (*work.answers, Ready), work.observe
        self.count = context.spec.experiment.workers.count
        self._budget = TrialBudget(context.trial_context)
        assert context.events.path is not None
        self._clock = PodClock(context.events.path)
        self._once = connection.once()
        self._jobs = 0
        self._slots: dict[int, PodSlot] = {}
        self._news: list[News] = []  # that have not been told yet

    def start(self) -> None:
        """Start all workers; nothing, with a Job per trial."""
        self._sources.watch(PODS)
        self._sources.poll(with_suggestion=False)
        self._patience.seconds = min(self._pending_seconds, SETUP_SHARE * self._timeouts.deploy_seconds)
        for worker in range(self.count):
            self.start_worker(worker)
        while not all(slot.is_ready for slot in self._slots.values()):
            death = next((piece for piece in self.look() if isinstance(piece, Death)), None)
            if death is not None:
                raise death.at_start()
        self._patience.seconds = self._pending_seconds

    def start_worker(self, index: int) -> None:
        if not self._has_job_per_trial:
            self._make(index)

    def send(self, index: int, content: Any) -> None:
        line = packed(content)
        if self._has_job_per_trial:
            self._make(index, line, content)
            return
        slot = self._slots[index]
        if slot.was_cut:
            slot = self._renew(slot)
        slot.unsent.append(f"{line}\n")
        self._serve(slot)

    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        """Return what happened, as soon as something has."""
        while not (news := self.look()):
            pass
        return news

    def close(self) -> None:
        """Let the workers end, and follow nothing any more; the cluster's objects are removed by the platform."""
        for slot in self._slots.values():
            if slot.input is not None:
                slot.input.close()
        self._sources.close()
        self._budget.close()
        self._context.note_versions({"image_digests": self.image_digests()})
        self._connection.close()

    def checkpoint_problem(self, trial_id: str) -> str | None:
        return self.checkpoint_problems.get(trial_id)

    def _make(self, index: int, line: str | None = None, task: Any = None) -> None:
        """Make the Job of a worker, or of one task."""
        self._jobs += 1
        name = f"{self._plan.config_map}-{self._jobs:05d}"
        command = ["python", "-m", WORKER_MODULE, str(index), *([] if line is None else [line])]
        seconds = None if line is None else math.ceil(self._timeouts.trial_seconds + self._pending_seconds)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": name_of(self._owner), "uid": self._owner["metadata"]["uid"]}
        names = {"name": name, "namespace": self._plan.namespace, "ownerReferences": [owner]}
        trial = None if line is None else task[0]
        context = self._context
        log = PodLog(context.run_dir, context.work_dir, context.execution_id, name, trial)
        self._slots[index] = PodSlot(name=name, log=log, seen_ns=clock.monotonic_ns(), index=index, last_trial=trial)
        self._connection.create(
            JOBS, job_manifest(self._plan, names, command, seconds, has_input=line is None), self._plan.namespace
        )

    def look(self) -> list[News]:
        """Take in one piece of what the cluster tells, or what the passing of time brings; return what came of it."""
        self._step()
        now = clock.monotonic_ns()
        for slot in self._pods():
            if slot.is_over:
                self._news.append(self._end(slot, now))
        news, self._news = self._news, []
        return news

    def _find(self, name: str) -> PodSlot | None:
        return next((slot for slot in self._slots.values() if slot.name == name), None)

    def _pods(self) -> Collection[PodSlot]:
        return list(self._slots.values())

    def _is_limited(self, pod: PodSlot) -> bool:
        return pod.trial is not None and pod.killed_ns is None and pod.ended_ns is None

    def _note_kill(self, pod: PodSlot, ending: PodEnding) -> None:
        pod.announce(self._context, ending)

    def _obstacles(self) -> Sequence[PodObstacle]:
        return obstacles(self._pods(), self._warnings)

    def fail(self, error: Exception) -> None:
        raise error

    def take_seen(self, resource: ApiResource, kind: str, pod: Object, t: int) -> None:
        slot = self._find(trial_of(pod))
        if slot is None:
            return
        slot.take_pod(kind, pod, t)
        self._open_log(slot)
        if not self._has_job_per_trial:
            self._serve(slot)

    def _serve(self, slot: PodSlot) -> None:
        """Give a worker what is due to it, once its input is there; where that is cut, another one takes its place."""
        slot.attach(self._once, self._plan.namespace)
        if not slot.flush() and slot.trial is None:
            self._renew(slot)

    def _renew(self, old: PodSlot) -> PodSlot:
        """Put a new worker in place of one that no task can reach any more."""
        self._sources.delete(PODS, old.pod_name)
        self._give_up(old)
        self._make(old.index)
        new = self._slots[old.index]
        new.unsent += [line for line in old.unsent if line.strip()]
        return new

    def _take_line(self, pod: PodSlot, line: bytes, t: int) -> None:
        context = self._context.trial_context
        text, record = record_in(line, context.execution_id)
        answer = None if record is None else answer_of(record, self._kinds)
        if answer is None:
            event = pod.log.take(line)
            if event is not None:
                if isinstance(event, TrialStarted) and event.attempt == 1:
                    self._budget.tickets.take()  # its own is of the pod's folder
                pod.take(event, t)
                self._observe(pod.index, event)
            if pod.log.is_broken:
                self._lose(pod, t)
            return
        pod.log.take(text)
        if isinstance(answer, TrialOutcome) and pod.trial is not None:  # its last events have not come
            pod.log.is_broken = True
            self._lose(pod, t)
            return
        if isinstance(answer, Ready):
            pod.is_ready = True
            return
        if pod.last_trial is not None and (problem := pod.log.keep_checkpoint(pod.last_trial)) is not None:
            self.checkpoint_problems[pod.last_trial] = problem
        if self._has_job_per_trial:
            pod.answers.append(answer)
        else:
            self._news.append(Message(pod.index, answer))

    def _look(self, now: int) -> None:
        """Act on what only time brings: the budget, input that is due, and what all pods have."""
        if self._budget.is_over_time():
            self._news += [self._cut(slot, now) for slot in self._pods() if slot.trial is not None]
            return
        if not self._is_away and not self._has_job_per_trial:
            for slot in self._pods():
                self._serve(slot)
        super()._look(now)

    def _cut(self, slot: PodSlot, now: int) -> Message:
        """End a trial because the time of the run is used up."""
        self._sources.delete(PODS, slot.pod_name)
        self._write_end(slot, PodEnding("cancelled", OUT_OF_TIME), now)
        self._give_up(slot)
        return Message(slot.index, TrialOutcome(state="cancelled", epochs=slot.epochs, cause=OUT_OF_TIME))

    def _lose(self, slot: PodSlot, now: int) -> None:
        """Give up a worker whose events are missing: what it has trained, nobody can say."""
        self._sources.delete(PODS, slot.pod_name)
        self._news.append(self._end(slot, now))

    def _end(self, slot: PodSlot, now: int) -> Message | Death:
        """Return what became of a pod that has ended, or is given up, and write the end of its trial if that could not."""
        self._give_up(slot)
        log = slot.log
        if slot.answers and not log.is_broken:
            return Message(slot.index, slot.answers[0])
        memory = self._context.trial_context.memory_bytes
        limits = PodLimits(deadline_seconds=self._timeouts.trial_seconds + self._pending_seconds, memory_bytes=memory)
        ending = ending_of(None, slot.pod, limits, slot.epochs, log.last_line, slot.is_log_whole, is_log_broken=log.is_broken)
        if slot.trial is not None:
            if ending.limit is not None and slot.killed_ns is None:
                slot.announce(self._context, ending)
            self._write_end(slot, ending if slot.killed_ns is None else PodEnding("failed"), slot.ended_ns or now)
        return Death(slot.index, 0, ending.exit_code, ending.cause, ending.charged)

    def _write_end(self, slot: PodSlot, ending: PodEnding, t: int) -> None:
        assert slot.trial is not None
        slot.write_end(self._context.events, slot.trial, ending, t, slot.attempt)

    def _give_up(self, slot: PodSlot) -> None:
        del self._slots[slot.index]
        slot.write_exit(self._context.events, self._clock)
        slot.log.end()
        if slot.input is not None:
            slot.input.close()
