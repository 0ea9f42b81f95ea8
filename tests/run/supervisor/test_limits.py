"""What limits the slots of a run, and what the record says of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_spec
from tuneoff.errors import UnsupportedError
from tuneoff.experiment.spec import Workers
from tuneoff.run.supervisor import limits
from tuneoff.run.supervisor.cgroups import Groups
from tuneoff.run.supervisor.execution import Execution
from tuneoff.run.supervisor.limits import ReservedProcessors, WorkerLimits, limit_workers, reserve_processors

FAR = 100 * (1000 + os.getpid())  # processors of these numbers exist nowhere, so neither a run nor another test holds them


@pytest.fixture
def execution(tmp_path: Path) -> Execution:
    return Execution(spec=make_spec(), execution_id=f"e-{os.urandom(4).hex()}", folder=tmp_path)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four processors, control groups of version 2 that take every limit, and no quota on this process itself."""
    monkeypatch.setattr(limits, "usable_processors", lambda: list(range(FAR, FAR + 4)))
    monkeypatch.setattr(limits, "own_quota", lambda root: None)

    def make(execution: Execution, wanted: dict[str, float], root: Path | None) -> dict[str, Groups]:
        folders = [tmp_path / f"{execution.execution_id}-{slot}" for slot in range(execution.spec.experiment.workers.count)]
        for folder in folders if wanted else []:
            folder.mkdir()
        return {controller: Groups(text="cgroup v2", folders=tuple(map(str, folders))) for controller in wanted}

    monkeypatch.setattr(limits, "make_groups", make)


@pytest.fixture
def _no_groups(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(execution: Execution, wanted: dict[str, float], root: Path | None) -> dict[str, Groups]:
        return dict.fromkeys(wanted, Groups(text="no permission"))

    monkeypatch.setattr(limits, "make_groups", make)


@pytest.fixture
def limited(execution: Execution, machine: None) -> Iterator[Any]:
    """A function that limits workers as its arguments say; what it reserves is freed."""
    with ReservedProcessors() as reserved:

        def limit(adapter: str = "tuneoff_adapters.serial:SerialAdapter", **workers: Any) -> WorkerLimits:
            spec = replace(make_spec(workers=Workers(**workers)), adapter_target=adapter)
            own = reserve_processors([spec], reserved)
            return limit_workers(Execution(spec=spec, execution_id=execution.execution_id, folder=execution.folder), own)

        yield limit


@pytest.fixture
def group(execution: Execution) -> Callable[[int], str]:
    """A function that returns the folder of a slot's control group."""
    return lambda slot: str(execution.folder / f"{execution.execution_id}-{slot}")


def processors(found: WorkerLimits) -> Sequence[Sequence[int]]:
    return [slot.processors for slot in found.slots]


@pytest.mark.parametrize("cpus", [0.5, 1, 2])
def test_by_default_no_slot_has_a_limit_of_processors_and_the_record_says_so(limited: Any, cpus: float) -> None:
    found = limited(count=2, cpus=cpus)
    assert found.slots == ()
    assert found.in_force == {"memory": "none (no limit asked for)", "cpus": "none (declared, not enforced)"}
    assert found.flags == ()


def test_affinity_gives_each_slot_processors_of_its_own(limited: Any) -> None:
    found = limited(count=2, cpus=2, cpu_limit="affinity")
    assert processors(found) == [(FAR, FAR + 1), (FAR + 2, FAR + 3)]
    assert found.in_force == {
        "memory": "none (no limit asked for)",
        "cpus": "affinity",
        "processors": [[FAR, FAR + 1], [FAR + 2, FAR + 3]],
    }
    assert found.flags == ()


def test_all_runs_of_a_matrix_are_put_on_the_same_processors_which_no_other_matrix_gets(machine: None) -> None:
    small, large = (make_spec(workers=Workers(count=count, cpu_limit="affinity")) for count in (1, 3))
    with ReservedProcessors() as ours, ReservedProcessors() as theirs:
        assert reserve_processors([small, large, make_spec()], ours) == (FAR, FAR + 1, FAR + 2)
        assert reserve_processors([small], theirs) == (FAR + 3,)
        with ReservedProcessors() as third, pytest.raises(UnsupportedError, match=r"another run of tuneoff holds .* of the 4;"):
            reserve_processors([small], third)


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


def test_a_quota_is_one_of_each_slot_and_stands_in_the_record(limited: Any, group: Callable[[int], str]) -> None:
    found = limited(count=2, cpus=0.5, cpu_limit="quota")
    assert [(slot.processors, slot.cpu_cgroup, slot.memory_cgroup) for slot in found.slots] == [
        ((), group(0), None),
        ((), group(1), None),
    ]
    assert (found.in_force["cpus"], found.in_force["cpu_quota"]) == ("cgroup v2", 0.5)
    assert found.flags == ()


def test_a_quota_above_the_share_of_a_copy_is_refused_before_any_run(machine: None) -> None:
    specs = [make_spec(workers=Workers(cpus=2, cpu_limit="quota"), copies=copies) for copies in (2, 4)]
    with ReservedProcessors() as reserved:
        assert reserve_processors(specs[:1], reserved) == ()
        rule = r"a worker 2 vCPU, but the share of each of 4 jobs at the same time is 1; use fewer `copies`"
        with pytest.raises(UnsupportedError, match=rule):
            reserve_processors(specs, reserved)


@pytest.mark.parametrize("cpu_limit", ["none", "quota"])
def test_more_workers_than_processors_are_flagged_whatever_the_limit(limited: Any, cpu_limit: str) -> None:
    ((name, text),) = limited(count=3, cpus=2, cpu_limit=cpu_limit).flags
    assert name == "too_few_processors"
    assert text == "3 workers of 2 CPU need 6 processors, but this machine gives 4: trials wait for each other"


def test_a_quota_on_this_process_itself_counts_as_too_few_processors(limited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "own_quota", lambda root: 1.5)
    assert [name for name, _ in limited(count=2).flags] == ["too_few_processors"]
    assert limited(count=1).flags == ()


@pytest.mark.usefixtures("_no_groups")
@pytest.mark.parametrize(
    ("workers", "why"),
    [
        ({"count": 2, "cpus": 0.5, "cpu_limit": "quota"}, "no permission"),
        ({"count": 5, "cpu_limit": "affinity"}, "a processor for each of 5 vCPU, but 4 may be used"),
    ],
)
def test_a_limit_that_cannot_be_put_in_force_is_refused_with_its_reason(limited: Any, workers: dict[str, Any], why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        limited(**workers)


@pytest.mark.usefixtures("_no_groups")
def test_a_quota_that_is_gone_before_a_later_run_is_no_run_without_one(execution: Execution) -> None:
    spec = make_spec(workers=Workers(count=2, cpu_limit="quota"))
    with pytest.raises(UnsupportedError, match="no permission"):
        limit_workers(replace(execution, spec=spec))


def test_trying_a_quota_leaves_no_group(machine: None, tmp_path: Path) -> None:
    spec = make_spec(workers=Workers(count=2, cpu_limit="quota", memory_mb=600))
    assert reserve_processors([spec], ReservedProcessors()) == ()
    assert list(tmp_path.iterdir()) == []
    limit_workers(Execution(spec=spec, execution_id="e", folder=tmp_path))  # negative control
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e-0", "e-1"]


def test_memory_has_its_group_beside_processors(limited: Any, group: Callable[[int], str]) -> None:
    found = limited(count=2, memory_mb=600, cpu_limit="affinity")
    assert [(slot.processors, slot.memory_cgroup, slot.cpu_cgroup) for slot in found.slots] == [
        ((FAR,), group(0), None),
        ((FAR + 1,), group(1), None),
    ]
    assert (found.in_force["memory"], found.in_force["cpus"]) == ("cgroup v2 and watchdog", "affinity")


@pytest.mark.usefixtures("_no_groups")
def test_without_a_group_the_watchdog_limits_memory_alone(limited: Any) -> None:
    assert limited(count=2, memory_mb=600).in_force["memory"] == "watchdog (no permission)"


def test_an_adapter_that_cannot_be_imported_is_left_to_the_coordinator(limited: Any) -> None:
    assert limited("no_such_module:Adapter", count=2, cpu_limit="affinity").in_force["cpus"] == "affinity"


def test_pods_are_left_to_their_cluster(limited: Any) -> None:
    found = limited("tuneoff_adapters.katib.adapter:KatibAdapter", count=8, cpus=1, memory_mb=600)
    assert (found.slots, found.flags) == ((), ())
    assert "cpus" not in found.in_force
