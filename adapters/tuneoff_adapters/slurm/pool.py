"""Core's pool of workers, in jobs of SLURM. A job's agent and its worker reach the coordinator over TCP, each by itself."""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tuneoff.base import clock
from tuneoff.base.processes import last_words
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.pool import Death, Message, News, Pool, Ready
from tuneoff_adapters.hosts.contact import Contact
from tuneoff_adapters.hosts.host import Node, Timed, after, until
from tuneoff_adapters.shares import SETUP_SHARE
from tuneoff_adapters.slurm import jobs
from tuneoff_adapters.slurm.channel import Channel, TamperedError
from tuneoff_adapters.slurm.door import Door, JobNode
from tuneoff_adapters.slurm.job import AGENT, Job
from tuneoff_adapters.slurm.options import slurm_options
from tuneoff_adapters.slurm.out_of_memory import announce_out_of_memory
from tuneoff_adapters.slurm.submission import submit

LOOK_SECONDS = 3.0  # between two looks at jobs that are waited for
LAST_SECONDS = 2.0  # for what a worker said last, once it has ended
ENDED_WITH_JOB = (-signal.SIGTERM, -signal.SIGUSR2, 0)  # exit codes of a worker: SLURM signals all of a job; its way was cut
MAX_FRUITLESS = 3  # jobs in a row that ended before they reached the coordinator


@dataclass(slots=True)
class _Place:
    """One worker: its job, what is connected of it, and what waits until it is."""

    job: Any
    since_ns: int  # it is waited for
    node: JobNode | None = None
    following: JobNode | None = None  # of the job's next start, while the end of the one before has not been seen
    working: Future[Timed] | None = None
    pipe: Channel | None = None
    reader: threading.Thread | None = None
    pid: int = 0
    host: str = ""
    is_ready: bool = False
    is_dead: bool = False  # its end was told, and no other one has been started


class SlurmPool(Pool):
    """`work`: what every worker does: its target, its arguments, what it imports before. `package`: to be equal on all hosts."""

    def __init__(self, context: RunContext, name: str, work: tuple[str, tuple[Any, ...], Sequence[str]], package: str) -> None:
        self._context, self._name, self._package = context, name, package
        self._options = slurm_options(context.spec)
        self._work = (str(context.trial_context.path), *work)
        self.count = context.spec.experiment.workers.count
        self._places: dict[int, _Place] = {}
        self._queue: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._news: list[News] = []
        self._fruitless = 0
        self._has_begun = False
        self._looked_ns = clock.monotonic_ns()
        self._contact = Contact(context, None, self._options.lost_seconds, lost=_give_up)
        self._door = Door(self._options.submit_host, self.count, lambda *arrival: self._queue.put((self._arrived, *arrival)))

    def start(self) -> None:
        deadline_ns = after(SETUP_SHARE * self._context.spec.experiment.timeouts.deploy_seconds)
        for index in range(self.count):
            self._places[index] = self._submit(index)
        self._await(deadline_ns, lambda place: place.node is not None)
        self._contact.keep()
        self._has_begun = True
        for index in range(self.count):
            self._begin(index)
        self._await(deadline_ns, lambda place: place.is_ready)

    def _await(self, deadline_ns: int, is_there: Any) -> None:
        while not all(map(is_there, self._places.values())):
            self._step(until(deadline_ns))
            death = next((one for one in self._news if isinstance(one, Death)), None)
            if death is not None:
                raise InfrastructureError(f"a worker must start, but {death.cause}; see the run's log")
            if until(deadline_ns) == 0.0:
                missing = next(place for place in self._places.values() if not is_there(place))
                raise InfrastructureError(self._waiting(missing, "timeouts.deploy_seconds"))

    def start_worker(self, index: int) -> None:
        place = self._places[index]
        place.is_dead = False
        if place.following is not None:
            node, place.following = place.following, None
            self._take_agent(index, place, node)
        elif place.node is not None:  # its job is there
            self._begin(index)
        elif (state := jobs.state_of(place.job.job_id)).is_to_come:
            jobs.start_now(place.job.job_id)
        elif state.name != jobs.AWAY:  # else it is looked at again
            jobs.cancel(place.job.job_id)
            self._places[index] = self._submit(index)

    def send(self, index: int, content: Any) -> None:
        pipe = self._places[index].pipe
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.send(content)

    def is_there(self, index: int) -> bool:
        return self._places[index].is_ready

    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        deadline_ns = None if timeout_seconds is None else after(timeout_seconds)
        while not self._news and (deadline_ns is None or until(deadline_ns) > 0.0):
            self._step(LOOK_SECONDS if deadline_ns is None else until(deadline_ns))
        news, self._news = self._news, []
        return news

    def _step(self, seconds: float) -> None:
        """Take in one piece of what connections tell, or what the passing of time brings."""
        with contextlib.suppress(queue.Empty):
            do, *about = self._queue.get(timeout=min(LOOK_SECONDS, seconds))
            do(*about)
        self._look()

    def close(self) -> None:
        """Let the workers end, and then their jobs."""
        for place in self._places.values():
            if place.pipe is not None:
                with contextlib.suppress(OSError):
                    place.pipe.send(None)
        deadline_ns = after(LAST_SECONDS)
        for place in self._places.values():
            if place.working is not None:
                with contextlib.suppress(TimeoutError, InfrastructureError):
                    place.working.result(until(deadline_ns))
        self._contact.end()
        self._door.close()
        self._places.clear()

    def _submit(self, index: int) -> _Place:
        return _Place(submit(self._context, self._name, Job(self._door.way, index)), clock.monotonic_ns())

    def _arrived(self, kind: str, index: int, job_id: str, about: Any, pipe: Channel) -> None:
        place = self._places.get(index)
        if place is None or place.job.job_id != job_id:
            pipe.close()
        elif kind == AGENT:
            node = JobNode(about, job_id, pipe, self._tampered)
            if place.working is None and not place.is_dead:
                self._take_agent(index, place, node)
            else:  # SLURM started it again before its host was found to be silent
                place.following = node
                if place.node is not None:
                    place.node.fail()
        else:
            place.pipe, place.pid = pipe, about
            place.reader = threading.Thread(target=self._read, args=(index, place, pipe), daemon=True)
            with contextlib.suppress(OSError):
                pipe.send(self._work)
            place.reader.start()

    def _take_agent(self, index: int, place: _Place, node: JobNode) -> None:
        if place.node is not None:  # SLURM has started its job again
            self._contact.let_go(place.node)
        try:
            for problem in self._contact.add([node]):
                raise InfrastructureError(problem)
            self._contact.check(self._package, [node])
        except StepError as error:
            if not self._has_begun:
                raise
            self._contact.let_go(node)
            place.node = None
            self._miss(index, place, f"it cannot take part: {error}")
            return
        place.node, place.host = node, node.host
        if self._has_begun:
            self._contact.measure()  # before its first trial
            self._begin(index)

    def _begin(self, index: int) -> None:
        """Start a worker in a job that is there."""
        place = self._places[index]
        assert place.node is not None
        place.working = place.node.send("work")
        place.working.add_done_callback(lambda told: self._queue.put((self._ended, index, place, told)))

    def _read(self, index: int, place: _Place, pipe: Channel) -> None:
        try:
            for content in pipe.messages():
                self._queue.put((self._told, index, place, pipe, pickle.loads(content)))
        except TamperedError as error:
            self._tampered(f"{place.host} (job {place.job.job_id})", error)

    def _tampered(self, host: str, error: TamperedError) -> None:
        self._queue.put((self._refuse, host, error))

    def _refuse(self, host: str, error: TamperedError) -> None:
        raise InfrastructureError(
            f"what this command and host {host} say to each other must arrive as it was sent, but {error}; "
            "use a network on which nobody else can change it"
        ) from error

    def _told(self, index: int, place: _Place, pipe: Channel, content: Any) -> None:
        if pipe is place.pipe:  # else it came later than the end of its worker
            self._fruitless, place.is_ready = 0, True
            self._news.append(content if isinstance(content, Ready) else Message(index, content))

    def _ended(self, index: int, place: _Place, told: Future[Timed]) -> None:
        """A worker has ended, or its job: what it said before that comes first."""
        if told is place.working:
            if place.reader is not None:
                place.reader.join(LAST_SECONDS)
            self._queue.put((self._bury, index, place, told))

    def _bury(self, index: int, place: _Place, told: Future[Timed]) -> None:
        if place.pipe is not None:
            place.pipe.end()
        pid, place.pid, was_ready = place.pid, 0, place.is_ready
        place.working, place.pipe, place.reader, place.is_ready, place.is_dead = None, None, None, False, True
        answer = told.result().answer if told.exception() is None else None
        if answer is not None and answer["exit_code"] not in ENDED_WITH_JOB:
            if answer["out_of_memory"]:
                announce_out_of_memory(self._context, place.host, pid)
            death = Death(index, pid, answer["exit_code"])
            if was_ready:
                self._news.append(death)
            else:
                self._miss(index, place, f"{death.cause} before it could take a trial: {last_words(place.job.paths.stdout)}")
            return
        why = f"host {place.host} ended it" if answer is not None else str(told.exception())
        if place.node is not None:
            self._contact.let_go(place.node)  # its agent goes, and with it the job
        place.node, place.since_ns = None, clock.monotonic_ns()
        state = jobs.settled(place.job.job_id) if place.following is None else jobs.State("RUNNING", "requeued")
        if state.name == "OUT_OF_MEMORY":
            announce_out_of_memory(self._context, place.host, pid)
        self._news.append(Death(index, pid, None, f"{why}; SLURM says of its job {place.job.job_id}: {state.text}"))

    def _look(self) -> None:
        """See now and then what became of jobs that are waited for, once all that was told is taken in."""
        if clock.monotonic_ns() - self._looked_ns < LOOK_SECONDS * clock.NANOSECONDS or not self._queue.empty():
            return
        self._looked_ns, missed = clock.monotonic_ns(), self._fruitless
        for place in self._places.values():
            if place.node is not None and not self._has_begun and place.node.is_gone:
                self._contact.let_go(place.node)
                place.node = None
        waiting = {index: place for index, place in self._places.items() if place.node is None and not place.is_dead}
        states = jobs.states(self._name, [place.job.job_id for place in waiting.values()]) if waiting else {}
        for index, place in waiting.items():
            state = states[place.job.job_id]
            if state.has_ended:
                self._fruitless = missed  # what ends all jobs at once counts once
                said = last_words(place.job.paths.stdout)
                self._miss(index, place, f"it ended ({state.text}) before it reached {self._door.way.place}: {said}")
            elif self._has_begun and clock.monotonic_ns() - place.since_ns > self._options.pending_seconds * clock.NANOSECONDS:
                raise InfrastructureError(self._waiting(place, "option `pending_seconds`"))

    def _miss(self, index: int, place: _Place, text: str) -> None:
        self._fruitless += 1
        if self._fruitless >= MAX_FRUITLESS:
            raise InfrastructureError(f"job {place.job.job_id} must get to work, but {text}")
        place.is_dead = True
        self._news.append(Death(index, 0, None, f"job {place.job.job_id}: {text}"))

    def _waiting(self, place: _Place, key: str) -> str:
        """Return what a job that has not come to work does, and the way out."""
        waited, state = (clock.monotonic_ns() - place.since_ns) / clock.NANOSECONDS, jobs.state_of(place.job.job_id)
        way_out = f"raise {key}, or ask SLURM for less"
        if state.name == "RUNNING":
            way_out = f"can its node reach {self._door.way.place}? option `submit_host` gives this machine another name"
        return f"job {place.job.job_id} must get to work, but after {waited:.0f} s it is {state.text}; {way_out}"


def _give_up(node: Node) -> None:
    """Take a host for lost that is silent: whatever waits for its answer need not wait any longer."""
    if isinstance(node, JobNode):
        node.fail()
