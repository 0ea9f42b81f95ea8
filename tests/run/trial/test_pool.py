"""The worker pool: order of messages, deaths, restarts, nothing left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from trial_runs import trial_context
from tuneoff.base.processes import children, is_alive, stat_fields
from tuneoff.errors import InfrastructureError, StepError
from tuneoff.platform import Death, Message, News, Pool, Ready
from tuneoff.run.trial.pool import Worker, WorkerPool


def echo(worker: Worker, prefix: str) -> None:
    while (content := worker.pipe.recv()) is not None:
        if content == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if content == "exit":
            os._exit(3)
        worker.pipe.send((prefix, worker.index, os.getpid(), content))


def one(pool: WorkerPool) -> News:
    """Return the next thing that happens."""
    for _ in range(100):
        found = pool.wait(30)
        if found:
            assert len(found) == 1
            return found[0]
    raise AssertionError("nothing happened")


def said(pool: WorkerPool, content: str) -> tuple[str, int, int, str]:
    """Return what worker 0 answers."""
    pool.send(0, content)
    answer = one(pool)
    assert isinstance(answer, Message)
    said: tuple[str, int, int, str] = answer.content
    return said


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """Let workers import what this file can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["interpreters", "forkserver"])
def pool(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, importable: None) -> Iterator[WorkerPool]:
    """Two workers, both there and without a task; every test leaves them so."""
    context = trial_context(tmp_path_factory.mktemp("pool"), slots=2)
    pool = WorkerPool(context, 2, "run.trial.test_pool:echo", ("p",), is_forked=request.param)
    pool.start()
    yield pool
    pool.close()


@pytest.mark.parametrize(("order", "code", "cause"), [("die", -9, "SIGKILL"), ("exit", 3, "exit code 3")])
def test_a_death_is_reported_with_its_cause_and_the_worker_can_be_started_again(
    pool: WorkerPool, order: str, code: int, cause: str
) -> None:
    pool.send(0, order)
    death = one(pool)
    assert isinstance(death, Death)
    assert (death.worker, death.exit_code) == (0, code)
    assert cause in death.cause
    pool.start_worker(0)
    assert said(pool, "again")[3] == "again"


def test_a_pool_runs_until_no_worker_has_anything_left_to_do(pool: WorkerPool) -> None:
    tasks, heard = ["a", "die", "b"], []

    def dispatch(worker: int, again: str | None) -> str | None:
        task = again or (tasks.pop(0) if tasks else None)
        if task is not None:
            pool.send(worker, task)
        return task

    def answered(task: str, content: tuple[str, int, int, str]) -> str | None:
        heard.append((task, content[3]))
        return "more" if content[3] == "a" else None

    def died(death: Death, task: str | None) -> str | None:
        assert (death.exit_code, task) == (-9, "die")
        return "tried again"

    pool.run(dispatch, answered, died)
    assert sorted(heard) == [("a", "a"), ("a", "more"), ("b", "b"), ("tried again", "tried again")]


def test_more_workers_than_slots_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"count=3, slots=2"):
        WorkerPool(trial_context(tmp_path, slots=2), 3, "run.trial.test_pool:echo", ("p",))


def test_close_ends_every_worker_even_a_busy_one(tmp_path: Path) -> None:
    pool = WorkerPool(trial_context(tmp_path), 1, "run.trial.test_pool:echo", ("p",))
    pool.start()
    pid = said(pool, "hello")[2]
    os.kill(pid, signal.SIGSTOP)  # it cannot react any more
    pool.close(grace_seconds=0.05)
    assert not is_alive(pid)
    pool.close()


def test_close_ends_the_fork_server_too(tmp_path: Path) -> None:
    pool = WorkerPool(trial_context(tmp_path), 1, "run.trial.test_pool:echo", ("p",), is_forked=True)
    pool.start()
    pid = said(pool, "hello")[2]
    fields = stat_fields(pid)
    assert fields is not None
    server = int(fields[1])
    assert is_alive(server)
    assert server != os.getpid()
    pool.close()
    assert not is_alive(server)
    assert not is_alive(pid)


@pytest.mark.parametrize("before", [True, False], ids=["before the start", "while it works"])
def test_a_fork_server_that_is_killed_from_outside_is_the_infrastructures(tmp_path: Path, before: bool) -> None:
    others = set(children(os.getpid()))
    pool = WorkerPool(trial_context(tmp_path), 1, "run.trial.test_pool:echo", ("p",), is_forked=True)
    (server,) = set(children(os.getpid())) - others
    if not before:
        pool.start()
    os.kill(server, signal.SIGKILL)
    if not before:
        death = one(pool)
        assert isinstance(death, Death)
        assert death.exit_code == -signal.SIGKILL
    with pytest.raises(InfrastructureError, match=rf"process {server}, which forks the workers, .* was ended by SIGKILL"):
        pool.start_worker(0)
    pool.close()


def test_a_fork_that_the_machine_refuses_is_an_error_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "import errno, os\ndef fork(): raise OSError(errno.EAGAIN, 'no process more')\nos.fork = fork\n"
    (tmp_path / "no_forks.py").write_text(module)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ['PYTHONPATH']}")
    context = trial_context(tmp_path)
    pool = WorkerPool(context, 1, "run.trial.test_pool:echo", ("p",), ("no_forks",), is_forked=True)
    with pytest.raises(BlockingIOError, match="Resource temporarily unavailable"):
        pool.start()
    pool.close()


def test_a_worker_that_cannot_start_is_one_clear_error(tmp_path: Path) -> None:
    pool = WorkerPool(trial_context(tmp_path), 1, "run.trial.test_pool:echo", ("p",))
    (tmp_path / "trial_context.json").unlink()
    with pytest.raises(StepError, match="a worker must start, but worker process"):
        pool.start()
    pool.close()


class Scripted(Pool):
    """Workers of which some are not there; what happens is a list. `sent`: tasks by worker."""

    def __init__(self, count: int, happens: list[list[News]]) -> None:
        self.count, self.happens, self.there = count, happens, set(range(count))
        self.sent: list[tuple[int, str]] = []

    def start(self) -> None: ...

    def start_worker(self, index: int) -> None:
        self.there.discard(index)  # it is to come

    def send(self, index: int, content: str) -> None:
        assert index in self.there
        self.sent.append((index, content))

    def wait(self, timeout_seconds: float | None = None) -> list[News]:
        found = self.happens.pop(0)
        self.there |= {event.worker for event in found if not isinstance(event, Death)}
        return found

    def close(self) -> None: ...

    def is_there(self, index: int) -> bool:
        return index in self.there

    def run_tasks(self, tasks: list[str], retries: int = 9) -> list[str]:
        """Run tasks, dead ones again as long as there are retries; return what was answered."""
        answered: list[str] = []

        def dispatch(worker: int, again: str | None) -> str | None:
            task = again or (tasks.pop(0) if tasks else None)
            if task is not None:
                self.send(worker, task)
            return task

        def died(death: Death, task: str | None) -> str | None:
            nonlocal retries
            retries -= 1
            return task if retries >= 0 else None

        self.run(dispatch, lambda task, content: answered.append(task), died, lambda: not tasks)
        return answered


def test_a_task_of_a_worker_that_is_to_come_again_goes_to_whoever_is_free_first() -> None:
    pool = Scripted(2, [[Death(0, 1, -9)], [Message(1, "done")], [Message(1, "done")]])
    assert pool.run_tasks(["a", "b"]) == ["b", "a"]  # and nobody waits for worker 0
    assert pool.sent == [(0, "a"), (1, "b"), (1, "a")]


def test_a_worker_with_nothing_left_to_do_takes_a_task_of_one_that_is_to_come() -> None:
    pool = Scripted(2, [[Message(1, "done")], [Death(0, 1, -9)], [Message(1, "done")]])
    assert pool.run_tasks(["a", "b"]) == ["b", "a"]


def test_where_no_worker_is_there_what_is_left_waits_for_the_first_that_comes() -> None:
    ends: list[list[News]] = [[Death(0, 1, -9), Death(1, 2, -9)], [Ready(1)], [Message(1, "done")]]
    pool = Scripted(2, [*ends, [Message(1, "done")], [Message(1, "done")]])
    assert sorted(pool.run_tasks(["a", "b", "c"])) == ["a", "b", "c"]
    assert pool.happens == []


def test_nobody_waits_for_a_worker_that_is_to_come_once_nothing_is_left() -> None:
    pool = Scripted(1, [[Death(0, 1, -9)]])
    assert pool.run_tasks(["a"], retries=0) == []
    assert pool.happens == []
