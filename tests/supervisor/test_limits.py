"""What limits the slots of a run, and what the record says of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from event_logs import make_spec
from tuneoff.experiment.spec import Workers
from tuneoff.supervisor import limits
from tuneoff.supervisor.cgroups import Groups
from tuneoff.supervisor.limits import WorkerLimits, limit_workers
from tuneoff.supervisor.prepare import Execution
from tuneoff.supervisor.processors import ReservedProcessors

FAR = 100 * (1000 + os.getpid())  # processors of these numbers exist nowhere, so neither a run nor another test holds them


@pytest.fixture
def execution(tmp_path: Path) -> Execution:
    return Execution(spec=make_spec(), execution_id=f"e-{os.urandom(4).hex()}", folder=tmp_path)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four processors, control groups of version 2 that take every limit, and no quota on this process itself."""
    monkeypatch.setattr(limits, "usable_processors", lambda: list(range(FAR, FAR + 4)))
    monkeypatch.setattr(limits, "own_quota", lambda root: None)

    def make(execution: Execution, wanted: dict[str, float], root: Path | None) -> dict[str, Groups]:
        folders = tuple(f"/group-{slot}" for slot in range(execution.spec.experiment.workers.count))
        return {controller: Groups(text="cgroup v2", folders=folders) for controller in wanted}

    monkeypatch.setattr(limits, "make_groups", make)


@pytest.fixture
def _no_groups(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(execution: Execution, wanted: dict[str, float], root: Path | None) -> dict[str, Groups]:
        return dict.fromkeys(wanted, Groups(text="no permission"))

    monkeypatch.setattr(limits, "make_groups", make)


@pytest.fixture
def limited(execution: Execution, machine: None) -> Iterator[Any]:
    """A function that limits workers as its arguments say; what it reserves is freed."""
    made: list[WorkerLimits] = []

    def limit(adapter: str = "tuneoff_adapters.serial:SerialAdapter", **workers: Any) -> WorkerLimits:
        spec = replace(make_spec(workers=Workers(**workers)), adapter_target=adapter)
        made.append(limit_workers(Execution(spec=spec, execution_id=execution.execution_id, folder=execution.folder)))
        return made[-1]

    yield limit
    for item in made:
        item.release()


def processors(found: WorkerLimits) -> Sequence[Sequence[int]]:
    return [slot.processors for slot in found.slots]


def test_whole_numbers_give_each_slot_processors_of_its_own(limited: Any) -> None:
    found = limited(count=2, cpus=2)
    assert processors(found) == [(FAR, FAR + 1), (FAR + 2, FAR + 3)]
    assert found.in_force == {
        "memory": "none (no limit asked for)",
        "cpus": "affinity",
        "processors": [[FAR, FAR + 1], [FAR + 2, FAR + 3]],
    }
    assert found.flags == ()


def test_no_two_runs_on_a_machine_get_the_same_processors(limited: Any) -> None:
    first, second, third = limited(count=2), limited(count=2), limited(count=1)
    assert processors(first) == [(FAR,), (FAR + 1,)]
    assert processors(second) == [(FAR + 2,), (FAR + 3,)]
    assert processors(third) == [()]
    assert third.in_force["cpus"] == "cgroup v2"
    first.release()
    assert processors(limited(count=1)) == [(FAR,)]


def test_what_is_reserved_is_free_again_when_its_holder_has_died() -> None:
    with ReservedProcessors() as held:
        assert held.take(1, [FAR]) == (FAR,)
        assert ReservedProcessors().take(1, [FAR]) == ()
        assert ReservedProcessors().take(2, [FAR, FAR + 1]) == ()  # and then holds none of them
        with ReservedProcessors() as other:
            assert other.take(1, [FAR, FAR + 1]) == (FAR + 1,)
    pid = os.fork()
    if pid == 0:
        ReservedProcessors().take(1, [FAR])
        os._exit(0)
    os.waitpid(pid, 0)
    with ReservedProcessors() as held:
        assert held.take(1, [FAR]) == (FAR,)


def test_decimals_are_a_quota(limited: Any) -> None:
    found = limited(count=2, cpus=0.5)
    assert [(slot.processors, slot.cpu_cgroup, slot.memory_cgroup) for slot in found.slots] == [
        ((), "/group-0", None),
        ((), "/group-1", None),
    ]
    assert (found.in_force["cpus"], found.in_force["cpu_quota"]) == ("cgroup v2", 0.5)
    assert found.flags == ()


def test_too_few_processors_are_a_quota_and_flagged(limited: Any) -> None:
    found = limited(count=3, cpus=2)
    assert [slot.cpu_cgroup for slot in found.slots] == ["/group-0", "/group-1", "/group-2"]
    ((name, text),) = found.flags
    assert name == "too_few_processors"
    assert text == "3 workers of 2 CPU need 6 processors, but this machine gives 4: trials wait for each other"


def test_a_quota_on_this_process_itself_counts_as_too_few_processors(limited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "own_quota", lambda root: 1.5)
    found = limited(count=2)
    assert found.in_force["cpus"] == "affinity"
    assert [name for name, _ in found.flags] == ["too_few_processors"]
    assert limited(count=1).flags == ()


@pytest.mark.usefixtures("_no_groups")
@pytest.mark.parametrize(
    ("workers", "why"),
    [
        ({"count": 2, "cpus": 0.5}, "0.5 is no number of whole processors"),
        ({"count": 5, "cpus": 1}, "5 workers of 1 need 5 processors, but 4 may be used"),
    ],
)
def test_where_neither_is_possible_trials_are_not_limited_and_the_record_says_why(
    limited: Any, workers: dict[str, Any], why: str
) -> None:
    found = limited(**workers)
    assert found.slots == ()
    assert found.in_force["cpus"] == f"none ({why}; no permission)"


@pytest.mark.usefixtures("_no_groups")
def test_processors_that_other_runs_hold_are_named_as_the_reason(limited: Any) -> None:
    with ReservedProcessors() as other:
        other.take(3, range(FAR, FAR + 4))
        found = limited(count=2)
    assert found.in_force["cpus"] == "none (2 of 4 processors are needed, but other runs hold too many; no permission)"


def test_a_system_without_affinity_has_a_quota(limited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "usable_processors", list)
    found = limited(count=2)
    assert found.in_force["cpus"] == "cgroup v2"
    assert found.flags == ()


def test_memory_has_its_group_beside_processors(limited: Any) -> None:
    found = limited(count=2, memory_mb=600)
    assert [(slot.processors, slot.memory_cgroup, slot.cpu_cgroup) for slot in found.slots] == [
        ((FAR,), "/group-0", None),
        ((FAR + 1,), "/group-1", None),
    ]
    assert (found.in_force["memory"], found.in_force["cpus"]) == ("cgroup v2 and watchdog", "affinity")


@pytest.mark.usefixtures("_no_groups")
def test_without_a_group_the_watchdog_limits_memory_alone(limited: Any) -> None:
    assert limited(count=2, memory_mb=600).in_force["memory"] == "watchdog (no permission)"


def test_pods_are_left_to_their_cluster(limited: Any) -> None:
    found = limited("tuneoff_adapters.katib.adapter:KatibAdapter", count=8, cpus=1, memory_mb=600)
    assert (found.slots, found.flags) == ((), ())
    assert "cpus" not in found.in_force


def test_an_adapter_that_cannot_be_imported_is_left_to_the_coordinator(limited: Any) -> None:
    assert limited("no_such_module:Adapter", count=2).in_force["cpus"] == "affinity"
