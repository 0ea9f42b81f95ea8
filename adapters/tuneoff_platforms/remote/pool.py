"""The pool of a platform that launches a job for each worker. Its agent and its worker reach the coordinator over TCP."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from tuneoff.base import clock
from tuneoff.base.layout import EVENTS
from tuneoff.base.process_limits import THREAD_VARIABLES
from tuneoff.base.processes import last_words
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.platform import Death, Message, News, Pool, PoolWork, Ready
from tuneoff.record.events.reader import SUFFIX, Statistics, read_file
from tuneoff.record.events.schema import TrialEnded, TrialStarted
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import announce_kill, out_of_memory_cause
from tuneoff_platforms.remote.channel import Channel, TamperedError
from tuneoff_platforms.remote.contact import Contact
from tuneoff_platforms.remote.coordinator_server import CoordinatorServer, JobNode
from tuneoff_platforms.remote.host import PASSED_ON, AgentNode, Timed, after, until
from tuneoff_platforms.remote.job import AGENT, Job
from tuneoff_platforms.remote.platform import Launch, LaunchState, RemotePlatform
from tuneoff_platforms.time_limits import SETUP_SHARE

LOOK_SECONDS = 3.0  # between two looks at jobs that are waited for
LAST_SECONDS = 2.0  # for what a worker said last, once it has ended
ENDED_WITH_JOB = (-signal.SIGTERM, -signal.SIGUSR2, 0)  # exit codes of a worker: a queue signals all of a job; its way was cut
MAX_FRUITLESS = 3  # jobs in a row that ended before they reached the coordinator


@dataclass(slots=True)
class _JobSlot:
    """One worker: its launch, what is connected of it, and what waits until it is."""

    launch: Launch
    number: int
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


class RemotePool(Pool):
    """Each worker is in a job that `platform` has launched, in which an agent looks after it."""

    def __init__(self, platform: RemotePlatform, work: PoolWork) -> None:
        self._platform, self._package = platform, work.package or "tuneoff"
        context = self._context = platform.context
        self._work = (str(context.trial_context.path), work.target, work.arguments, work.preload)
        self.count = context.spec.experiment.workers.count
        self._slots: dict[int, _JobSlot] = {}
        self._queue: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._news: list[News] = []
        self._fruitless = self._launches = 0
        self._has_begun = False
        self._looked_ns = clock.monotonic_ns()
        self._contact = Contact(context, None, platform.lost_seconds, lost=_give_up)
        self._server = CoordinatorServer(
            platform.address, self.count, lambda *arrival: self._queue.put((self._arrived, *arrival)), platform.listen
        )

    def start(self) -> None:
        deadline_ns = after(SETUP_SHARE * self._context.spec.experiment.timeouts.deploy_seconds)
        for index in range(self.count):
            self._slots[index] = self._submit(index)
        self._await(deadline_ns, lambda slot: slot.node is not None)
        self._contact.keep()
        self._has_begun = True
        for index in range(self.count):
            self._begin(index)
        self._await(deadline_ns, lambda slot: slot.is_ready)

    def _await(self, deadline_ns: int, is_there: Any) -> None:
        while not all(map(is_there, self._slots.values())):
            self._step(until(deadline_ns))
            death = next((piece for piece in self._news if isinstance(piece, Death)), None)
            if death is not None:
                raise InfrastructureError(f"a worker must start, but {death.cause}; see the run's log")
            if until(deadline_ns) == 0.0:
                missing = next(slot for slot in self._slots.values() if not is_there(slot))
                raise InfrastructureError(self._waiting(missing, "timeouts.deploy_seconds"))

    def start_worker(self, index: int) -> None:
        slot = self._slots[index]
        slot.is_dead = False
        if slot.following is not None:
            node, slot.following = slot.following, None
            self._take_agent(index, slot, node)
        elif slot.node is not None:  # its job is there
            self._begin(index)
        elif (phase := self._state(slot).phase) == "waiting":
            self._platform.hasten(slot.launch)
        elif phase != "unknown":  # else it is looked at again
            self._platform.cancel(slot.launch)
            self._slots[index] = self._submit(index)

    def send(self, index: int, content: Any) -> None:
        pipe = self._slots[index].pipe
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.send(content)

    def is_there(self, index: int) -> bool:
        return self._slots[index].is_ready

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
        for slot in self._slots.values():
            if slot.pipe is not None:
                with contextlib.suppress(OSError):
                    slot.pipe.send(None)
        deadline_ns = after(LAST_SECONDS)
        for slot in self._slots.values():
            if slot.working is not None:
                with contextlib.suppress(TimeoutError, InfrastructureError):
                    slot.working.result(until(deadline_ns))
        self._contact.end()
        self._server.close()
        self._slots.clear()

    def _submit(self, index: int) -> _JobSlot:
        self._launches += 1
        launch = self._platform.launch(Job(self._server.endpoint, index, self._launches))
        return _JobSlot(launch, self._launches, clock.monotonic_ns())

    def _state(self, slot: _JobSlot) -> LaunchState:
        return self._platform.states([slot.launch])[slot.launch.name]

    def _arrived(self, kind: str, index: int, number: int, about: Any, pipe: Channel) -> None:
        slot = self._slots.get(index)
        if slot is None or slot.number != number:
            pipe.close()
        elif kind == AGENT:
            node = JobNode(about, slot.launch.name, pipe, self._tampered)
            if slot.working is None and not slot.is_dead:
                self._take_agent(index, slot, node)
            else:  # it was started again before its host was found to be silent
                slot.following = node
                if slot.node is not None:
                    slot.node.fail()
        else:
            slot.pipe, slot.pid = pipe, about
            slot.reader = threading.Thread(target=self._read, args=(index, slot, pipe), daemon=True)
            with contextlib.suppress(OSError):
                pipe.send(self._work)
            slot.reader.start()

    def _take_agent(self, index: int, slot: _JobSlot, node: JobNode) -> None:
        if slot.node is not None:  # its job was started again
            self._contact.let_go(slot.node)
        try:
            for problem in self._contact.add([node]):
                raise InfrastructureError(problem)
            self._contact.check(self._package, [node])
        except StepError as error:
            if not self._has_begun:
                raise
            self._contact.let_go(node)
            slot.node = None
            self._miss(index, slot, f"it cannot take part: {error}")
            return
        slot.node, slot.host = node, node.host
        if self._has_begun:
            self._contact.measure()  # before its first trial
            self._begin(index)

    def _begin(self, index: int) -> None:
        """Start a worker in a job that is there."""
        slot = self._slots[index]
        assert slot.node is not None
        slot.working = slot.node.send("work", environment=_environment())
        slot.working.add_done_callback(lambda future: self._queue.put((self._ended, index, slot, future)))

    def _read(self, index: int, slot: _JobSlot, pipe: Channel) -> None:
        try:
            for content in pipe.messages():
                self._queue.put((self._take_message, index, slot, pipe, pickle.loads(content)))
        except TamperedError as error:
            self._tampered(f"{slot.host} ({slot.launch.name})", error)

    def _tampered(self, host: str, error: TamperedError) -> None:
        self._queue.put((self._refuse, host, error))

    def _refuse(self, host: str, error: TamperedError) -> None:
        raise InfrastructureError(
            f"what this command and host {host} say to each other must arrive as it was sent, but {error}; "
            "use a network that no one else can change"
        ) from error

    def _take_message(self, index: int, slot: _JobSlot, pipe: Channel, content: Any) -> None:
        if pipe is slot.pipe:  # else it came later than the end of its worker
            self._fruitless, slot.is_ready = 0, True
            self._news.append(content if isinstance(content, Ready) else Message(index, content))

    def _ended(self, index: int, slot: _JobSlot, future: Future[Timed]) -> None:
        """A worker has ended, or its job: what it said before that comes first."""
        if future is slot.working:
            if slot.reader is not None:
                slot.reader.join(LAST_SECONDS)
            self._queue.put((self._bury, index, slot, future))

    def _bury(self, index: int, slot: _JobSlot, future: Future[Timed]) -> None:
        if slot.pipe is not None:
            slot.pipe.end()
        pid, slot.pid, was_ready = slot.pid, 0, slot.is_ready
        slot.working, slot.pipe, slot.reader, slot.is_ready, slot.is_dead = None, None, None, False, True
        answer = future.result().answer if future.exception() is None else None
        if answer is not None and answer["exit_code"] not in ENDED_WITH_JOB:
            if answer["out_of_memory"]:
                announce_out_of_memory(self._context, slot.host, pid, self._platform.memory_limiter)
            death = Death(index, pid, answer["exit_code"])
            if was_ready:
                self._news.append(death)
            else:
                self._miss(index, slot, f"{death.cause} before it could take a trial: {last_words(slot.launch.log)}")
            return
        why = f"host {slot.host} ended it" if answer is not None else str(future.exception())
        if slot.node is not None:
            self._contact.let_go(slot.node)  # its agent goes, and with it the job
        slot.node, slot.since_ns = None, clock.monotonic_ns()
        state = self._platform.settled(slot.launch) if slot.following is None else LaunchState("running", "started again")
        if state.is_out_of_memory:
            announce_out_of_memory(self._context, slot.host, pid, self._platform.memory_limiter)
        self._news.append(Death(index, pid, None, f"{why}; {slot.launch.name}: {state.text}"))

    def _look(self) -> None:
        """See now and then what became of jobs that are waited for, once all that was told is taken in."""
        if clock.monotonic_ns() - self._looked_ns < LOOK_SECONDS * clock.NANOSECONDS or not self._queue.empty():
            return
        self._looked_ns, missed = clock.monotonic_ns(), self._fruitless
        for slot in self._slots.values():
            if slot.node is not None and not self._has_begun and slot.node.is_gone:
                self._contact.let_go(slot.node)
                slot.node = None
        waiting = {index: slot for index, slot in self._slots.items() if slot.node is None and not slot.is_dead}
        states = self._platform.states([slot.launch for slot in waiting.values()]) if waiting else {}
        for index, slot in waiting.items():
            state = states[slot.launch.name]
            if state.phase == "ended":
                self._fruitless = missed  # what ends all jobs at once counts once
                words = last_words(slot.launch.log)
                self._miss(index, slot, f"it ended ({state.text}) before it reached {self._server.endpoint.address}: {words}")
            elif self._has_begun and clock.monotonic_ns() - slot.since_ns > self._platform.pending_seconds * clock.NANOSECONDS:
                raise InfrastructureError(self._waiting(slot, "option `pending_seconds`"))

    def _miss(self, index: int, slot: _JobSlot, text: str) -> None:
        self._fruitless += 1
        if self._fruitless >= MAX_FRUITLESS:
            raise InfrastructureError(f"{slot.launch.name} must get to work, but {text}")
        slot.is_dead = True
        self._news.append(Death(index, 0, None, f"{slot.launch.name}: {text}"))

    def _waiting(self, slot: _JobSlot, key: str) -> str:
        """Return what a job that has not come to work does, and the way out."""
        waited, state = (clock.monotonic_ns() - slot.since_ns) / clock.NANOSECONDS, self._state(slot)
        way_out = f"raise {key}, or ask for less"
        if state.phase == "running":
            way_out = f"can its host reach {self._server.endpoint.address}? option `submit_host` gives this machine another name"
        return f"{slot.launch.name} must get to work, but after {waited:.0f} s it is {state.text}; {way_out}"


def _give_up(node: AgentNode) -> None:
    """Take a host for lost that is silent: whatever waits for its answer need not wait any longer."""
    if isinstance(node, JobNode):
        node.fail()


def announce_out_of_memory(context: RunContext, host: str, pid: int, limiter: str) -> None:
    """Note that a trial of the worker that had this process on a host ends for its memory, so that it is not tried again."""
    open_attempt: tuple[str, int] | None = None
    for path in sorted((context.run_dir / EVENTS).glob(f"worker-{pid}-*{SUFFIX}")):
        for process, event in read_file(path, Statistics()):
            if process.host != host:
                break
            if isinstance(event, TrialStarted):
                open_attempt = event.trial, event.attempt
            elif isinstance(event, TrialEnded):
                open_attempt = None
    if open_attempt is None:
        return
    cause = out_of_memory_cause(context.trial_context.memory_bytes, limiter)
    announce_kill(context.run_dir, context.events, *open_attempt, cause, charged="workload", limit="memory")


def _environment() -> dict[str, str]:
    """Return the variables of a worker that a host does not have by itself."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("TUNEOFF_") or name in (*THREAD_VARIABLES, *PASSED_ON, "XDG_CACHE_HOME")
    }
