"""What a command makes of the processes that supervise copies: which begin, which it ends, and what it says of one that dies."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_spec
from command_line import write_file
from tuneoff.errors import ResultsError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import make_plan
from tuneoff.experiment.power_settings import PowerSettings
from tuneoff.measure.stored import read_runs
from tuneoff.record.endings import NO_SUPERVISOR
from tuneoff.run import execute
from tuneoff.run.execute import PlanRequest
from tuneoff.run.supervisor import copies
from tuneoff.run.supervisor.copies import READY, supervise_copies
from tuneoff.run.supervisor.run import RunRequest
from tuneoff.trust.verify.results import verify

FULL = OSError(errno.ENOSPC, "No space left on device", "file")
FULL_DISK = """
import sys
if "tuneoff.run.supervisor.copies" in sys.orig_argv:
    from tuneoff.run.supervisor import run
    def supervise(request):
        raise OSError(28, "No space left on device", "file")
    run.supervise = supervise
"""
WAIT_SECONDS = 10
Behaviour = Callable[[Connection], None]


class Supervisors:
    """Stand-ins for processes, each a thread with its behaviour; `terminated`: how many were asked to end."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self._behaviours, self.terminated = iter(behaviours), 0

    def terminate(self) -> None:
        self.terminated += 1

    @contextlib.contextmanager
    def __call__(self, request: RunRequest, power: PowerSettings) -> Iterator[Any]:
        connection, other = Pipe()
        thread = threading.Thread(target=next(self._behaviours), args=(other,))
        thread.start()
        with connection:
            yield connection, self
        thread.join()


def ends_as(answer: Any) -> Behaviour:
    def behave(other: Connection) -> None:
        with other, contextlib.suppress(EOFError, OSError):  # the command has closed its end
            other.send(READY)
            other.recv()
            other.send(answer)

    return behave


def dies_ready(other: Connection) -> None:
    with other:
        other.send(READY)


def is_killed(other: Connection) -> None:
    other.close()


def never_ready(other: Connection) -> None:
    with other:
        other.poll(WAIT_SECONDS)  # until the command closes its end


def supervised(
    monkeypatch: pytest.MonkeyPatch, *behaviours: Behaviour, interrupt: bool = False
) -> tuple[Supervisors, Callable[[], Any]]:
    supervisors = Supervisors(*behaviours)
    monkeypatch.setattr(copies, "_supervisor", supervisors)
    event = threading.Event()
    if interrupt:
        event.set()
    requests = [RunRequest(spec=make_spec(), results=Path("unused"), interrupt=event) for _ in behaviours]
    return supervisors, lambda: supervise_copies(requests, PowerSettings())


def test_one_that_dies_before_or_after_it_is_ready_lets_the_others_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisors, run = supervised(monkeypatch, ends_as("first"), dies_ready, is_killed, ends_as("last"))
    assert run() == ["first", None, None, "last"]
    assert supervisors.terminated == 0
    _, run = supervised(monkeypatch, is_killed, dies_ready)
    assert run() == [None, None]


def test_an_interrupt_before_all_are_ready_begins_none(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisors, run = supervised(monkeypatch, ends_as("never"), never_ready, interrupt=True)
    assert run() == []
    assert supervisors.terminated == 0


@pytest.mark.parametrize("is_ready", [True, False])
def test_the_error_of_one_ends_the_others_and_is_raised_with_its_cause(monkeypatch: pytest.MonkeyPatch, is_ready: bool) -> None:
    answer = ResultsError("cannot be written"), FULL

    def fails(other: Connection) -> None:
        with other:
            other.send(answer)

    behaviours = (ends_as(answer), ends_as("ended")) if is_ready else (fails, never_ready)
    supervisors, run = supervised(monkeypatch, ends_as("ended"), *behaviours)
    with pytest.raises(ResultsError, match="cannot be written") as raised:
        run()
    assert isinstance(raised.value.__cause__, OSError)
    assert raised.value.__cause__.errno == errno.ENOSPC
    assert supervisors.terminated in ((0, 3) if is_ready else (0,))


@pytest.mark.parametrize("ends", [[None, None], []])
def test_copies_without_a_supervisor_have_failed_and_those_that_never_began_are_still_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[None]
) -> None:
    """Nothing of them is in the folder: they died, or were interrupted, before they began an execution."""

    def supervise(requests: Sequence[RunRequest], power: PowerSettings) -> list[None]:
        if not ends:
            requests[0].interrupt.set()
        return ends

    monkeypatch.setattr(execute, "supervise_copies", supervise)
    content = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 2}, "warm_up": False, "copies": 2}
    plan = make_plan(load_matrix(write_file(tmp_path / "file.yaml", content)))
    run_ends = execute.execute(PlanRequest(plan=plan, results=tmp_path / "results"))
    expected = ("failed", NO_SUPERVISOR.reason) if ends else ("planned", None)
    assert [(end.status, end.reason) for end in run_ends] == [expected] * 2
    assert [record.charged for record in read_runs(tmp_path / "results")] == ["infrastructure" for _ in ends]
    assert verify(tmp_path / "results").problems == []


def test_a_full_disk_of_copies_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text(FULL_DISK)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    content = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 2}, "warm_up": False, "copies": 2}
    plan = make_plan(load_matrix(write_file(tmp_path / "file.yaml", content)))
    with pytest.raises(ResultsError, match=r"cannot be written: No space left on device \(file\); free space and add --resume"):
        execute.execute(PlanRequest(plan=plan, results=tmp_path / "results"))
    assert "Traceback" not in capfd.readouterr().err
