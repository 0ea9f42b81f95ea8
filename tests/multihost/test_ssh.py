"""Platform `ssh`: workers of core's pool on two hosts, and on one of them once the other has no power."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from multihost.commands import RESTORING, Runs, hosts_of, left, taken_over, verified
from namespaced_hosts import Hosts, hosts
from tuneoff.record.events.schema import Epoch
from waiting import until

pytestmark = [pytest.mark.multihost, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def two() -> Iterator[Hosts]:
    with hosts(2) as made:
        yield made


def runs_of(two: Hosts, name: str) -> Runs:
    options = {"hosts": ["h1", "h2"], "host_command": two.template, "lost_seconds": 10}
    return Runs(two, {"name": name, "platform": "ssh", "options": options}, {})


@pytest.mark.parametrize("framework", ["serial", "optuna", "nevergrad"])
def test_trials_run_on_both_hosts_and_nothing_is_left(two: Hosts, framework: str) -> None:
    runs = runs_of(two, framework)
    command = runs(budget={"trials": 8, "epochs_per_trial": 2}, workload={"name": "sleep", "options": {"epoch_seconds": 0.5}})
    said = command.end()
    record = command.record
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 8
    assert set(hosts_of(record).values()) == {"h1", "h2"}
    assert 0 < record.clock_uncertainty_ns < 500_000_000
    assert [left(two, name) for name in two.names] == [[], []]
    verified(runs, command)


def test_trials_of_a_host_without_power_are_tried_again_on_the_other(two: Hosts) -> None:
    runs = runs_of(two, "serial")
    fields: dict[str, Any] = {"workers": {"count": 2}, "failures": {"retries": 1}, "budget": {"trials": 3, "epochs_per_trial": 6}}
    command = runs(workload=RESTORING, **fields)
    command.wait_for(lambda: len({event.trial for event in command.events(Epoch)}) == 2)
    two.power_off("h2")
    said = command.end(150)
    two.power_on("h2")
    record = command.record
    assert record.status == "done", said
    assert [trial.state for trial in record.trials] == ["completed"] * 3
    (again,) = [trial for trial in record.trials if len(trial.attempts) == 2]
    assert again.attempts[0].charged == "infrastructure"
    placed = hosts_of(record)
    assert (placed[again.trial, 1], placed[again.trial, 2]) == ("h2", "h1")
    assert taken_over(again) >= 1
    assert "host_lost" in {flag.name for flag in record.flags}
    until(lambda: left(two, "h1") == [], 10)
    verified(runs, command)


def test_a_host_that_cannot_be_reached_is_named_in_one_line(two: Hosts) -> None:
    runs = runs_of(two, "serial")
    command = runs({"hosts": ["h1", "h2", "h7"], "host_command": two.template})
    command.end()
    reason = command.record.reason or ""
    assert reason.startswith("step deploy failed: a worker must start, but h7 #"), reason
    assert "ssh: Could not resolve hostname h7" in reason
    assert "\n" not in reason
    assert left(two, "h1") == []
