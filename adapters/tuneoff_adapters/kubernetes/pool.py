"""Core's pool of workers, in pods: a Job for each worker, or for each trial; followed by their logs and a watch on pods."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tuneoff.base import clock
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.events.schema import Event, TrialStarted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.budget import TrialBudget
from tuneoff.run.trial.pool import Death, Message, Pool
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.kubernetes.checks import Rights
from tuneoff_adapters.kubernetes.clock_skew import PodClock
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.diagnosis import trial_of
from tuneoff_adapters.kubernetes.endings import Ending, Limits, ending_of
from tuneoff_adapters.kubernetes.layout import CONTAINER, WORKER_MODULE
from tuneoff_adapters.kubernetes.manifest import job_manifest
from tuneoff_adapters.kubernetes.messages import READY, answer_of, packed
from tuneoff_adapters.kubernetes.patience import Patience
from tuneoff_adapters.kubernetes.place import Place, findings
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.pod_log import PodLog
from tuneoff_adapters.kubernetes.resources import JOBS, PODS, Object, name_of
from tuneoff_adapters.kubernetes.sources import Away, Broken, LogEnd, LogLine, Polled, Recounted, Seen, Sources
from tuneoff_adapters.kubernetes.status import exit_of, has_ended, image_id_of, is_running

POOL_RIGHTS: Rights = (
    (JOBS, "", ("create", "list")),
    (PODS, "attach", ("create", "get")),  # which of them depends on the server's version
)
LOOK_SECONDS = 0.25  # between two looks at what only time brings
OUT_OF_TIME = "wall-clock budget used up"


class PodPool(Pool):
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
        self._context, self._plan, self._connection, self._owner = context, plan, connection, owner
        self._pending_seconds, self._has_job_per_trial = pending_seconds, has_job_per_trial
        self._kinds, self._observe = kinds, observe
        self._timeouts = context.spec.experiment.timeouts
        self.count = context.spec.experiment.workers.count
        self._budget = TrialBudget(context.trial_context)
        assert context.events.path is not None
        self._clock = PodClock(context.events.path)
        patient = connection.limits
        self._once = connection.limited(replace(patient, api=patient.call, pause=float("inf")))  # one try
        self._sources = Sources(connection, plan.namespace, plan.config_map, plan.labels)
        self._patience = Patience(pending_seconds)
        self._warnings: Sequence[Object] = ()
        self._is_away = False
        self._looked_ns = 0
        self._jobs = 0
        self._places: dict[int, Place] = {}
        self.checkpoint_problems: dict[str, str] = {}  # by trial id
        self.image_digests: set[str] = set()  # what the pods ran

    def start(self, within_seconds: float) -> None:
        """Start all workers; at the return each has its imports and could take a trial. Nothing, with a Job per trial.

        Raises:
            StepError: a worker ended before it was ready, or has no pod, and why.
        """
        self._sources.watch(PODS)
        self._sources.poll(with_suggestion=False)
        self._patience.seconds = min(self._pending_seconds, within_seconds)
        for worker in range(self.count):
            self.start_worker(worker)
        while not all(place.is_ready for place in self._places.values()):
            death = next((one for one in self._step() if isinstance(one, Death)), None)
            if death is not None:
                raise StepError(f"a worker must start, but {death.cause}; see the run's log")
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

    def wait(self, timeout_seconds: float | None = None) -> list[Message | Death]:
        """Return what happened, as soon as something has."""
        while not (found := self._step()):
            pass
        return found

    def alive(self) -> list[int]:
        return list(range(self.count))

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
        self._places[index] = Place(job=name, log=log, last_trial=trial)
        self._connection.create(
            JOBS, job_manifest(self._plan, names, command, seconds, has_input=line is None), self._plan.namespace
        )

    def _step(self) -> list[Message | Death]:
        """Take in one piece of news, or what the passing of time brings."""
        item = self._sources.get(LOOK_SECONDS)
        found: list[Message | Death] = []
        if isinstance(item, Broken):
            raise item.error
        if isinstance(item, Away | Polled):
            self._is_away = isinstance(item, Away)
            if isinstance(item, Polled) and item.warnings is not None:
                self._warnings = item.warnings
        elif isinstance(item, Seen):
            self._take_pod(item)
        elif isinstance(item, LogLine | LogEnd | Recounted):
            index = self._index_of(item.trial)
            if index is not None:
                found = self._take_log(index, self._places[index], item)
        now = clock.monotonic_ns()
        if item is None or now - self._looked_ns > LOOK_SECONDS * clock.NANOSECONDS:
            self._looked_ns = now
            found += self._look(now)
        for index, place in list(self._places.items()):
            if place.is_over:
                found.append(self._end(index, place, now))
        return found

    def _index_of(self, job: str) -> int | None:
        """Return whose pod a Job has now; None for one that has been given up."""
        return next((index for index, place in self._places.items() if place.job == job), None)

    def _take_pod(self, item: Seen) -> None:
        index = self._index_of(trial_of(item.thing))
        if index is None:
            return
        place, pod = self._places[index], item.thing
        place.pod = pod
        image = image_id_of(pod, CONTAINER)
        self.image_digests |= {image} if image is not None else set()
        if place.ended_ns is None and (exit_of(pod, CONTAINER) or has_ended(pod) or item.kind == "DELETED"):
            place.ended_ns = item.t
            ended = exit_of(pod, CONTAINER)
            if place.log.process is not None and not (ended and self._clock.is_late(ended.finished_at, item.t)):
                self._context.events.write("process_exited", t=item.t, process=place.log.process.name)
        if not place.is_log_open and (is_running(pod, CONTAINER) or exit_of(pod, CONTAINER)):
            place.is_log_open = True
            self._sources.follow_log(place.job, name_of(pod), lambda: place.ended_ns is not None)
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

    def _take_log(self, index: int, place: Place, item: LogLine | LogEnd | Recounted) -> list[Message | Death]:
        if isinstance(item, Recounted):
            place.is_recounting = False
            if item.lines is None or item.lines > place.lines:
                place.sign_ns = clock.monotonic_ns()
            elif place.trial is not None:
                self._kill(place, f"timed out: silent for {self._timeouts.silence_seconds:g} s")
            return []
        if isinstance(item, LogEnd):
            place.was_log_read, place.is_log_whole = True, item.is_complete and not item.was_rotated
            return []
        context = self._context.trial_context
        place.lines += 1
        place.sign_ns = item.t
        answer = answer_of(item.line, self._kinds)
        if answer is None:
            event = place.log.take(item.line)
            if event is not None:
                if isinstance(event, TrialStarted) and context.is_first(event.trial, event.attempt):
                    self._budget.tickets.take()  # its own is of the pod's folder
                place.take(event, item.t)
                self._observe(index, event)
            return []
        if answer == READY:
            place.is_ready = True
            return []
        if place.last_trial is not None and (problem := place.log.keep_checkpoint(place.last_trial)) is not None:
            self.checkpoint_problems[place.last_trial] = problem
        place.answers.append(answer)
        return [] if self._has_job_per_trial else [Message(index, place.answers.pop())]

    def _look(self, now: int) -> list[Message | Death]:
        """Act on what only time brings: budget, limits, signs of life, and why a pod does not start."""
        found: list[Message | Death] = []
        if self._budget.is_over_time():
            for index, place in list(self._places.items()):
                if place.trial is not None:
                    found.append(self._cut(index, place, now))
            return found
        if self._is_away:
            self._patience.forget()
            return found
        for index, place in list(self._places.items()):
            if not self._has_job_per_trial:
                self._serve(index, place)
            if place.trial is not None and not place.was_killed and place.ended_ns is None:
                self._limit(place, now)
        finding = self._patience.overdue(findings(self._places.values(), self._warnings), now)
        if finding is not None:
            raise StepError(finding.line) if finding.is_final else InfrastructureError(finding.line)
        return found

    def _limit(self, place: Place, now: int) -> None:
        seconds, silence = self._timeouts.trial_seconds, self._timeouts.silence_seconds
        if now - place.started_ns > seconds * clock.NANOSECONDS:
            self._kill(place, f"timed out: longer than {seconds:g} s")
        elif now - place.sign_ns > silence * clock.NANOSECONDS and not place.is_recounting and not place.was_log_read:
            place.is_recounting = True
            self._sources.recount(place.job, place.pod_name)

    def _kill(self, place: Place, cause: str) -> None:
        place.was_killed = True
        place.announce(self._context, Ending(state="failed", cause=cause, charged="workload", limit="time"))
        self._sources.delete(PODS, place.pod_name)

    def _cut(self, index: int, place: Place, now: int) -> Message:
        """End a trial because the time of the run is used up."""
        self._sources.delete(PODS, place.pod_name)
        place.write_end(self._context, Ending(state="cancelled", cause=OUT_OF_TIME), now)
        self._give_up(index)
        return Message(index, TrialOutcome(state="cancelled", epochs=place.epochs, cause=OUT_OF_TIME))

    def _end(self, index: int, place: Place, now: int) -> Message | Death:
        """Return what became of a pod that has ended, and write the end of its trial if that could not."""
        self._give_up(index)
        if place.answers:
            return Message(index, place.answers[0])
        memory = self._context.trial_context.memory_bytes
        limits = Limits(deadline_seconds=self._timeouts.trial_seconds + self._pending_seconds, memory_bytes=memory)
        ending = ending_of(None, place.pod, limits, place.epochs, place.log.last_line, place.is_log_whole)
        if place.trial is not None:
            if ending.limit is not None and not place.was_killed:
                place.announce(self._context, ending)
            place.write_end(self._context, Ending(state="failed") if place.was_killed else ending, place.ended_ns or now)
        return Death(index, 0, ending.exit_code, ending.cause)

    def _give_up(self, index: int) -> None:
        place = self._places.pop(index)
        place.log.end()
        if place.input is not None:
            place.input.close()
