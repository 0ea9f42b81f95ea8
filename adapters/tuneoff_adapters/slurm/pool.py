"""Core's pool of workers, in jobs of SLURM. A job's agent and its worker reach the coordinator over TCP, each by itself."""

from __future__ import annotations

import contextlib
import math
import queue
import shlex
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

from tuneoff.base import clock
from tuneoff.base.processes import last_words
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.record.events.reader import SUFFIX, Statistics, read_file
from tuneoff.record.events.schema import TrialEnded, TrialStarted
from tuneoff.record.events.writer import FOLDER
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import note_kill, out_of_memory_cause
from tuneoff.run.trial.pool import READY, Death, Message, Pool
from tuneoff_adapters.hosts.contact import Contact
from tuneoff_adapters.hosts.host import Node, Timed, after, until
from tuneoff_adapters.slurm import jobs
from tuneoff_adapters.slurm.door import Door, JobNode
from tuneoff_adapters.slurm.job import AGENT, Job
from tuneoff_adapters.slurm.options import MINUTES, SLURM, memory_of, slurm_options

LOOK_SECONDS = 3.0  # between two looks at jobs that are waited for
SIGNAL_SECONDS = 30  # before the end of a job's time: submitit puts it back into the queue
LAST_SECONDS = 2.0  # for what a worker said last, once it has ended
MAX_FRUITLESS = 3  # jobs in a row that ended before they reached the coordinator


@dataclass(slots=True)
class _Place:
    """One worker: its job, what is connected of it, and what waits until it is."""

    job: Any
    since_ns: int  # it is waited for
    node: JobNode | None = None
    working: Future[Timed] | None = None
    pipe: connection.Connection | None = None
    reader: threading.Thread | None = None
    pid: int = 0
    is_ready: bool = False
    unsent: list[Any] = field(default_factory=list)


class SlurmPool(Pool):
    """`work`: what every worker does: its target, its arguments, what it imports before. `package`: to be equal on all hosts."""

    def __init__(self, context: RunContext, name: str, work: tuple[str, tuple[Any, ...], Sequence[str]], package: str) -> None:
        self._context, self._name, self._package = context, name, package
        self._options = slurm_options(context.spec)
        self._work = (str(context.trial_context.path), *work)
        self.count = context.spec.experiment.workers.count
        self._places: dict[int, _Place] = {}
        self._queue: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._news: list[Message | Death] = []
        self._fruitless = 0
        self._has_begun = False
        self._looked_ns = clock.monotonic_ns()
        self._contact = Contact(context, None, self._options.lost_seconds, _give_up)
        self._door = Door(self._options.submit_host, lambda *arrival: self._queue.put((self._arrived, *arrival)))

    def start(self, within_seconds: float) -> None:
        """Submit all jobs; at the return each worker could take a trial.

        Raises:
            StepError: a job has not come, or its host cannot take part.
            InfrastructureError: SLURM does not take the jobs.
        """
        deadline_ns = after(within_seconds)
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
                raise StepError(f"a worker must start, but {death.cause}; see the run's log")
            if until(deadline_ns) == 0.0:
                missing = next(place for place in self._places.values() if not is_there(place))
                raise StepError(f"{self._waiting(missing)}; raise timeouts.deploy_seconds, or ask SLURM for less")

    def start_worker(self, index: int) -> None:
        place = self._places[index]
        if place.node is not None:  # its job is there
            self._begin(index)
        elif jobs.state_of(place.job.job_id).is_to_come:
            jobs.start_now(place.job.job_id)
        else:
            jobs.cancel(place.job.job_id)
            self._places[index] = self._submit(index)

    def send(self, index: int, content: Any) -> None:
        place = self._places[index]
        if place.pipe is None or not place.is_ready:
            place.unsent.append(content)
            return
        with contextlib.suppress(OSError):
            place.pipe.send(content)

    def wait(self, timeout_seconds: float | None = None) -> list[Message | Death]:
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

    def alive(self) -> list[int]:
        return list(self._places)

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
        import submitit

        options, workers = self._options, self._context.spec.experiment.workers
        folder = self._context.work_dir / SLURM
        folder.mkdir(mode=0o700, exist_ok=True)
        flags = dict(options.sbatch)
        executor = submitit.SlurmExecutor(folder, python=shlex.quote(options.host_python))
        executor.update_parameters(
            job_name=self._name,
            time=flags.pop("time", MINUTES),
            nodes=1,
            ntasks_per_node=1,
            cpus_per_task=math.ceil(workers.cpus),
            mem=None if workers.memory_mb is None else memory_of(workers.memory_mb),
            signal_delay_s=SIGNAL_SECONDS,
            stderr_to_stdout=True,
            setup=list(options.setup) or None,
            additional_parameters={"requeue": True, **flags},
        )
        try:
            return _Place(executor.submit(Job(self._door.way, index)), clock.monotonic_ns())
        except (submitit.core.utils.FailedJobError, OSError) as error:
            raise InfrastructureError(f"SLURM must take a job, but sbatch says: {' '.join(str(error).split())}") from error

    def _arrived(self, kind: str, index: int, job_id: str, about: Any, pipe: connection.Connection) -> None:
        place = self._places.get(index)
        if place is None or place.job.job_id != job_id:
            pipe.close()
        elif kind == AGENT:
            self._take_agent(index, place, JobNode(f"{about} (job {job_id})", pipe))
        else:
            place.pipe, place.pid = pipe, about
            place.reader = threading.Thread(target=self._read, args=(index, place, pipe), daemon=True)
            pipe.send(self._work)
            place.reader.start()

    def _take_agent(self, index: int, place: _Place, node: JobNode) -> None:
        for problem in self._contact.add([node]):
            raise InfrastructureError(problem)
        self._contact.check(self._package, [node])
        place.node, self._fruitless = node, 0
        if self._has_begun:
            self._contact.measure()  # before its first trial
            self._begin(index)

    def _begin(self, index: int) -> None:
        """Start a worker in a job that is there."""
        place = self._places[index]
        assert place.node is not None
        place.working = place.node.send("work")
        place.working.add_done_callback(lambda told: self._queue.put((self._ended, index, place, told)))

    def _read(self, index: int, place: _Place, pipe: connection.Connection) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                self._queue.put((self._told, index, place, pipe.recv()))

    def _told(self, index: int, place: _Place, content: Any) -> None:
        if content != READY:
            self._news.append(Message(index, content))
            return
        place.is_ready = True
        unsent, place.unsent = place.unsent, []
        for one in unsent:
            self.send(index, one)

    def _ended(self, index: int, place: _Place, told: Future[Timed]) -> None:
        """A worker has ended, or its job: what it said before that comes first."""
        if told is place.working:
            if place.reader is not None:
                place.reader.join(LAST_SECONDS)
            self._queue.put((self._bury, index, place, told))

    def _bury(self, index: int, place: _Place, told: Future[Timed]) -> None:
        host = place.node.name if place.node is not None else "its host"
        if place.pipe is not None:
            place.pipe.close()
        place.working, place.pipe, place.reader, place.is_ready = None, None, None, False
        if told.exception() is None:
            answer = told.result().answer
            if answer["out_of_memory"]:
                self._announce(place.pid)
            self._news.append(Death(index, place.pid, answer["exit_code"]))
            return
        if place.node is not None:
            self._contact.let_go(place.node)
        place.node, place.since_ns = None, clock.monotonic_ns()
        state = jobs.settled(place.job.job_id)
        if state.name == "OUT_OF_MEMORY":
            self._announce(place.pid)
        self._news.append(Death(index, place.pid, None, f"{told.exception()}; SLURM says of its job: {state.text} on {host}"))

    def _announce(self, pid: int) -> None:
        """Note that a worker's trial ends for its memory, so that it is not tried again."""
        open_attempt: tuple[str, int] | None = None
        files = (self._context.run_dir / FOLDER).glob(f"worker-{pid}-*{SUFFIX}")
        for path in sorted(files, key=lambda path: path.stat().st_mtime)[-1:]:
            for _, event in read_file(path, Statistics()):
                if isinstance(event, TrialStarted):
                    open_attempt = event.trial, event.attempt
                elif isinstance(event, TrialEnded):
                    open_attempt = None
        if open_attempt is None:
            return
        cause = out_of_memory_cause(self._context.trial_context.memory_bytes, "SLURM")
        note_kill(self._context.run_dir, *open_attempt, cause)
        trial, attempt = open_attempt
        why: dict[str, Any] = {"cause": cause, "charged": "workload", "limit": "memory"}
        self._context.events.write("trial_killed", trial=trial, attempt=attempt, **why)

    def _look(self) -> None:
        """See now and then what became of jobs that are waited for."""
        if clock.monotonic_ns() - self._looked_ns < LOOK_SECONDS * clock.NANOSECONDS:
            return
        self._looked_ns = clock.monotonic_ns()
        for index, place in self._places.items():
            if place.node is not None:
                continue
            state = jobs.state_of(place.job.job_id)
            if state.has_ended:
                self._miss(index, place, state)
            elif self._has_begun and clock.monotonic_ns() - place.since_ns > self._options.pending_seconds * clock.NANOSECONDS:
                raise StepError(f"{self._waiting(place)}; raise option `pending_seconds`, or ask SLURM for less")

    def _miss(self, index: int, place: _Place, state: jobs.State) -> None:
        self._fruitless += 1
        said = last_words(place.job.paths.stdout)
        text = f"job {place.job.job_id} ended ({state.text}) before it reached {self._door.way.place}: {said}"
        if self._fruitless >= MAX_FRUITLESS:
            raise StepError(f"jobs must get to work, but {text}")
        self._news.append(Death(index, 0, None, text))

    def _waiting(self, place: _Place) -> str:
        waited = (clock.monotonic_ns() - place.since_ns) / clock.NANOSECONDS
        return f"job {place.job.job_id} must get to work, but after {waited:.0f} s it is {jobs.state_of(place.job.job_id).text}"


def _give_up(node: Node) -> None:
    """Take a host for lost that is silent: whatever waits for its answer need not wait any longer."""
    if isinstance(node, JobNode):
        node.fail()
