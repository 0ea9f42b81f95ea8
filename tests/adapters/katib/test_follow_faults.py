"""Following an experiment through outages: slots and times are those of the pods, and one lost pod costs one trial."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adapters.katib.followed_run import DONE, FIRST, SECOND, Run
from adapters.katib.katib_objects import ended
from adapters.katib.pod_lines import epoch, header, started
from tuneoff.base import clock
from tuneoff.experiment.spec import Timeouts
from tuneoff.record.events import schema
from tuneoff_adapters.kubernetes import pod_follower, sources
from tuneoff_adapters.kubernetes.api_errors import ApiError, Unreachable
from waiting import until

pytestmark = pytest.mark.slow  # processes, or faults that have to last

S = clock.NANOSECONDS
REFUSED = ApiError("GET /log", 500, "InternalError", "no route to the node")
SILENT = Unreachable("GET /log: no answer in time")  # as from a node that hangs: the server waits for it


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(pod_follower, "BACK_NS", 0)


@pytest.mark.parametrize("problem", [REFUSED, SILENT], ids=["refused", "silent"])
def test_a_pod_whose_log_cannot_be_read_costs_its_trial_alone(run: Run, problem: ApiError | Unreachable) -> None:
    run.begins(FIRST, 0.5)
    run.cluster.logs[f"p-{FIRST}"].is_complete = False
    run.cluster.logs[f"p-{FIRST}"].put(problem)
    run.pod(FIRST, "Succeeded", ended(0))
    run.trial(FIRST, *DONE)
    run.completes(SECOND, [0.5, 0.25])
    run.succeeds()
    records = {record.trial: record for record in run.record().trials}
    assert (records[FIRST].state, records[FIRST].charged, records[SECOND].state) == ("failed", "infrastructure", "completed")
    (flag,) = run.events(schema.Flag)
    assert flag.name == "pod_log_unreadable"
    assert f"p-{FIRST}" in flag.text
    assert str(problem) in flag.text


@pytest.mark.parametrize("problem", [REFUSED, SILENT], ids=["refused", "silent"])
def test_a_silent_trial_whose_log_cannot_be_counted_is_not_blamed(
    make: Callable[..., Run], problem: ApiError | Unreachable
) -> None:
    run = make(timeouts=Timeouts(trial_seconds=100, silence_seconds=0.2))
    run.cluster.refusal = problem
    run.begins(FIRST, 0.5)
    assert until(lambda: any(trial.asked_ns is not None for trial in run.follower.ledger))
    first_ns = next(iter(run.follower.ledger)).asked_ns
    assert until(lambda: next(iter(run.follower.ledger)).asked_ns != first_ns)  # it is asked again, after a while
    assert (run.cluster.deleted, run.ends()) == ([], {})


def test_a_pod_that_may_not_be_deleted_does_not_end_the_run(make: Callable[..., Run]) -> None:
    run = make(timeouts=Timeouts(trial_seconds=0.3, silence_seconds=100))
    run.cluster.refusal = ApiError("DELETE /p", 403, "Forbidden", "pods is forbidden")
    run.begins(FIRST, 0.5)
    assert until(lambda: any(item.name == "delete_refused" for item in run.events(schema.Flag)))
    run.dies(FIRST, ended(143))
    run.cluster.refusal = None
    assert until(lambda: FIRST in run.ends())
    run.completes(SECOND, [])
    run.succeeds()
    assert run.record().trials[0].cause == "timed out: longer than 0.3 s"


def test_no_trial_is_killed_while_the_server_is_away(make: Callable[..., Run]) -> None:
    run = make(timeouts=Timeouts(trial_seconds=0.6, silence_seconds=100))
    run.begins(FIRST, 0.5)
    run.cluster.is_there.clear()
    assert until(lambda: run.follower._is_away)
    (trial,) = run.follower.ledger
    assert until(lambda: trial.started_ns is not None and clock.monotonic_ns() - trial.started_ns > S)
    assert run.cluster.deleted == []
    run.cluster.is_there.set()
    assert until(lambda: run.cluster.deleted == [("pods", f"p-{FIRST}")])


def test_a_trial_s_time_counts_from_its_start_and_not_from_when_that_came_through(make: Callable[..., Run]) -> None:
    run = make(timeouts=Timeouts(trial_seconds=15, silence_seconds=100))
    zero = clock.monotonic_ns() - 20 * S
    lines = [header(run.context.execution_id), started(FIRST, {"x": 0.5}, t=zero), epoch(FIRST, 1, 0.5)]
    run.runs(FIRST, *run.logged(*lines))
    assert until(lambda: run.cluster.deleted == [("pods", f"p-{FIRST}")], 10)
