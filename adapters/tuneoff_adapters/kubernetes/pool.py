"""Core's pool of workers, in pods: a Job for each worker, or for each trial; followed by their logs and a watch on pods."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tuneoff.base import clock
from tuneoff.record.events.schema import Event, TrialStarted
from tuneoff.record.events.stream import record_in
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.pool import Death, Message, News, Pool, Ready
from tuneoff.run.trial.run_trial import OUT_OF_TIME, TrialOutcome
from tuneoff.run.trial.trial_process import TrialBudget
from tuneoff_adapters.kubernetes.checks import Rights
from tuneoff_adapters.kubernetes.clock_skew import PodClock
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import Finding, trial_of
from tuneoff_adapters.kubernetes.endings import Ending, Limits, ending_of
from tuneoff_adapters.kubernetes.layout import WORKER_MODULE
from tuneoff_adapters.kubernetes.manifest import job_manifest
from tuneoff_adapters.kubernetes.messages import answer_of, packed
from tuneoff_adapters.kubernetes.place import Place, findings
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.pod_follower import PodFollower
from tuneoff_adapters.kubernetes.pod_log import PodLog
from tuneoff_adapters.kubernetes.resources import JOBS, PODS, Object, Resource, name_of
from tuneoff_adapters.shares import SETUP_SHARE

POOL_RIGHTS: Rights = (
    (JOBS, "", ("create", "list")),
    (PODS, "attach", ("create", "get")),  # which of them depends on the server's version
)


class PodPool(PodFollower[Place], Pool):
    """`owner`: of the Jobs; `kinds`: the dataclasses that workers answer with; `observe(worker, event)` sees all events."""

    def __init__(
        self,
        context: RunContext,
        plan: PodPlan,
        connection: Connection,
        owner: Object,
        *,
        pending_seconds: float,
        has_job_per_trial: bool,
        kinds: Sequence[type],
        observe: Callable[[int, Event], None],
    ) -> None:
        super().__init__(context, plan, connection, pending_seconds)
        self._plan, self._connection, self._owner = plan, connection, owner
        self._has_job_per_trial, self._kinds, self._observe = has_job_per_trial, (*kinds, Ready), observe
        self.count = context.spec.experiment.workers.count
        self._budget = TrialBudget(context.trial_context)
        assert context.events.path is not None
        self._clock = PodClock(context.events.path)
        patient = connection.limits
        self._once = connection.limited(replace(patient, api=patient.call, pause=float("inf")))  # one try
        self._jobs = 0
        self._places: dict[int, Place] = {}
        self._news: list[News] = []  # that have not been told yet

    def start(self) -> None:
        """Start all workers; nothing, with a Job per trial."""
        self._sources.watch(PODS)
        self._sources.poll(with_suggestion=False)
        self._patience.seconds = min(self._pending_seconds, SETUP_SHARE * self._timeouts.deploy_seconds)
        for worker in range(self.count):
            self.start_worker(worker)
        while not all(place.is_ready for place in self._places.values()):
            death = next((one for one in self.look() if isinstance(one, Death)), None)
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
        place = self._places[index]
        if place.was_cut:
            place = self._renew(index)
        place.unsent.append(f"{line}\n")
        self._serve(index, place)

    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        """Return what happened, as soon as something has."""
        while not (news := self.look()):
            pass
        return news

    def close(self) -> None:
        """Let the workers end, and follow nothing any more; who made the cluster's objects removes them."""
        for place in self._places.values():
            if place.input is not None:
                place.input.close()
        self._sources.close()
        self._budget.close()

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
        self._places[index] = Place(name=name, log=log, seen_ns=clock.monotonic_ns(), last_trial=trial)
        self._connection.create(
            JOBS, job_manifest(self._plan, names, command, seconds, has_input=line is None), self._plan.namespace
        )

    def look(self) -> list[News]:
        """Take in one piece of what the cluster tells, or what the passing of time brings; return what came of it."""
        self._step()
        now = clock.monotonic_ns()
        for index, place in list(self._places.items()):
            if place.is_over:
                self._news.append(self._end(index, place, now))
        news, self._news = self._news, []
        return news

    def _index_of(self, job: str) -> int | None:
        """Return whose pod a Job has now; None for one that has been given up."""
        return next((index for index, place in self._places.items() if place.name == job), None)

    def _find(self, name: str) -> Place | None:
        index = self._index_of(name)
        return None if index is None else self._places[index]

    def _pods(self) -> Collection[Place]:
        return list(self._places.values())

    def _is_limited(self, pod: Place) -> bool:
        return pod.trial is not None and pod.killed_ns is None and pod.ended_ns is None

    def _note_kill(self, pod: Place, ending: Ending) -> None:
        pod.announce(self._context, ending)

    def _findings(self) -> Sequence[Finding]:
        return findings(self._pods(), self._warnings)

    def _fail(self, error: Exception) -> None:
        raise error

    def take_seen(self, resource: Resource, kind: str, thing: Object, t: int) -> None:
        index = self._index_of(trial_of(thing))
        if index is None:
            return
        place = self._places[index]
        place.take_pod(kind, thing, t)
        self._open_log(place)
        if not self._has_job_per_trial:
            self._serve(index, place)

    def _serve(self, index: int, place: Place) -> None:
        """Give a worker what is due to it, once its input is there; where that is cut, another one takes its place."""
        place.attach(self._once, self._plan.namespace)
        if not place.flush() and place.trial is None:
            self._renew(index)

    def _renew(self, index: int) -> Place:
        """Put a new worker in place of one that no task can reach any more."""
        old = self._places[index]
        self._sources.delete(PODS, old.pod_name)
        self._give_up(index)
        self._make(index)
        self._places[index].unsent += [line for line in old.unsent if line.strip()]
        return self._places[index]

    def _take_line(self, pod: Place, line: bytes, t: int) -> None:
        index = self._index_of(pod.name)
        assert index is not None
        context = self._context.trial_context
        text, record = record_in(line, context.execution_id)
        answer = None if record is None else answer_of(record, self._kinds)
        if answer is None:
            event = pod.log.take(line)
            if event is not None:
                if isinstance(event, TrialStarted) and event.attempt == 1:
                    self._budget.tickets.take()  # its own is of the pod's folder
                pod.take(event, t)
                self._observe(index, event)
            if pod.log.is_broken:
                self._lose(index, pod, t)
            return
        pod.log.take(text)
        if isinstance(answer, TrialOutcome) and pod.trial is not None:  # its last events have not come
            pod.log.is_broken = True
            self._lose(index, pod, t)
            return
        if isinstance(answer, Ready):
            pod.is_ready = True
            return
        if pod.last_trial is not None and (problem := pod.log.keep_checkpoint(pod.last_trial)) is not None:
            self.checkpoint_problems[pod.last_trial] = problem
        if self._has_job_per_trial:
            pod.answers.append(answer)
        else:
            self._news.append(Message(index, answer))

    def _look(self, now: int) -> None:
        """Act on what only time brings: the budget, input that is due, and what all pods have."""
        if self._budget.is_over_time():
            for index, place in list(self._places.items()):
                if place.trial is not None:
                    self._news.append(self._cut(index, place, now))
            return
        if not self._is_away and not self._has_job_per_trial:
            for index, place in list(self._places.items()):
                self._serve(index, place)
        super()._look(now)

    def _cut(self, index: int, place: Place, now: int) -> Message:
        """End a trial because the time of the run is used up."""
        self._sources.delete(PODS, place.pod_name)
        self._write_end(place, Ending(state="cancelled", cause=OUT_OF_TIME), now)
        self._give_up(index)
        return Message(index, TrialOutcome(state="cancelled", epochs=place.epochs, cause=OUT_OF_TIME))

    def _lose(self, index: int, place: Place, now: int) -> None:
        """Give up a worker whose events are missing: what it has trained, nobody can say."""
        self._sources.delete(PODS, place.pod_name)
        self._news.append(self._end(index, place, now))

    def _end(self, index: int, place: Place, now: int) -> Message | Death:
        """Return what became of a pod that has ended, or is given up, and write the end of its trial if that could not."""
        self._give_up(index)
        log = place.log
        if place.answers and not log.is_broken:
            return Message(index, place.answers[0])
        memory = self._context.trial_context.memory_bytes
        limits = Limits(deadline_seconds=self._timeouts.trial_seconds + self._pending_seconds, memory_bytes=memory)
        ending = ending_of(None, place.pod, limits, place.epochs, log.last_line, place.is_log_whole, is_log_broken=log.is_broken)
        if place.trial is not None:
            if ending.limit is not None and place.killed_ns is None:
                place.announce(self._context, ending)
            self._write_end(place, ending if place.killed_ns is None else Ending(state="failed"), place.ended_ns or now)
        return Death(index, 0, ending.exit_code, ending.cause, ending.charged)

    def _write_end(self, place: Place, ending: Ending, t: int) -> None:
        assert place.trial is not None
        place.write_end(self._context.events, place.trial, ending, t, place.attempt)

    def _give_up(self, index: int) -> None:
        place = self._places.pop(index)
        place.write_exit(self._context.events, self._clock)
        place.log.end()
        if place.input is not None:
            place.input.close()
