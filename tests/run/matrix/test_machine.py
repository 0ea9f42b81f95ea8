"""The look at the machine before a run: each reading from a tree of our own, each flag planted."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builders.waiting_processes import waiting
from tuneoff.base.json_values import plain
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import make_plan
from tuneoff.record.environment import memory
from tuneoff.run import machine
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.machine import FLAGS, PASSING, Guard, MachineState, look, notes, stored_states
from tuneoff.run.progress import Listener
from tuneoff.run.supervisor.leftovers import RESULTS_MARK

QUIET = MachineState(
    load_1min=0.0,
    sentinel_ns=20_000_000,
    memory_available_bytes=8_000_000_000,
    memory_total_bytes=16_000_000_000,
    disk_free_bytes=50_000_000_000,
    temporary_free_bytes=50_000_000_000,
    throttle_count=7,
    clock_source="tsc",
    governor="performance",
    frequency_limit=1.0,
)
UNREADABLE = MachineState(load_1min=0.0, sentinel_ns=20_000_000)
PLANTED: list[tuple[dict[str, Any], str]] = [
    ({"sentinel_ns": 30_000_000}, "machine_drift"),
    ({"governor": "powersave"}, "machine_changed"),
    ({"clock_source": "kvm-clock"}, "machine_changed"),
    ({"survivors": ("17: python -m tuneoff.run.trial",)}, "earlier_survivor"),
    ({"memory_available_bytes": 900_000_000}, "low_memory"),
    ({"disk_free_bytes": 1_000}, "low_disk"),
    ({"temporary_free_bytes": 1_000}, "low_disk"),
    ({"frequency_limit": 0.5}, "frequency_limited"),
]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "LOOK_NS", 1)  # one sentinel


def names(found: list[tuple[str, str]]) -> list[str]:
    return [name for name, _ in found]


@pytest.mark.parametrize("state", [QUIET, UNREADABLE])
def test_a_quiet_machine_and_one_that_tells_nothing_have_no_flag(state: MachineState) -> None:
    assert notes(state, [state]) == []


@pytest.mark.parametrize(("change", "name"), PLANTED)
def test_each_defect_of_the_machine_has_its_flag_and_no_other(change: dict[str, Any], name: str) -> None:
    now = replace(QUIET, **change)
    ((found, text),) = notes(now, [QUIET, now])
    assert found == name
    assert len(text) > 20


def test_memory_is_held_to_what_the_workers_may_use() -> None:
    assert names(notes(QUIET, [QUIET], memory_needed=9_000_000_000)) == ["low_memory"]
    small = replace(QUIET, memory_available_bytes=500_000_000, memory_total_bytes=2_000_000_000)  # a quarter is free
    assert notes(small, [small]) == []


def test_every_flag_is_known_by_name() -> None:
    assert {name for _, name in PLANTED} | {"slow_clock_source", "cpu_throttled"} == FLAGS
    assert {"slow_clock_source", "frequency_limited"} == FLAGS - PASSING  # a repetition would find the same
    assert {"disturbed"} == PASSING - FLAGS  # of the run itself, by its samples


def test_the_run_in_which_processors_were_throttled_is_flagged(tmp_path: Path, trees: tuple[Path, Path]) -> None:
    _, sys_ = trees
    guard = Guard(tmp_path, sys=sys_)
    flagged = []
    for hot in (False, True, False):
        guard.look()
        if hot:
            (sys_ / machine.CPUS / "cpu0/thermal_throttle/core_throttle_count").write_text("12\n")
        flagged.append(names(guard.after_run()))
    assert flagged == [[], ["cpu_throttled"], []]
    assert Guard(tmp_path, sys=sys_).after_run() == []  # no look was taken before it


def test_no_look_is_flagged_for_being_faster_than_a_slow_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(QUIET, sentinel_ns=3 * QUIET.sentinel_ns)
    looks = iter([slow, QUIET, slow, QUIET])
    monkeypatch.setattr(machine, "look", lambda *_, **__: next(looks))
    guard = Guard(tmp_path)
    assert [names(guard.look()[1]) for _ in range(4)] == [[], [], ["machine_drift"], []]


@pytest.mark.parametrize(("share", "text"), [(0.525, "at least 50 %"), (0.12, None), (0.0, None)])
def test_what_others_use_during_the_look_is_told_where_clock_ticks_are_no_explanation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, text: str | None
) -> None:
    looks, processors = count(0, 400_000_000), len(os.sched_getaffinity(0))  # of 0.8 s, in ns
    monkeypatch.setattr(machine, "clock", SimpleNamespace(NANOSECONDS=10**9, monotonic_ns=lambda: next(looks)))
    used = iter([7, 7 + round(share * 0.8e9) * processors])
    monkeypatch.setattr(machine, "_others_ns", lambda proc: next(used))
    found = machine.busy_text(look(tmp_path))
    assert found is None if text is None else text in (found or "")


def test_what_others_use_is_what_the_host_used_without_this_process(tmp_path: Path) -> None:
    own = sorted(os.sched_getaffinity(0))[0]
    (tmp_path / "stat").write_text("".join(f"cpu{name} 100000 0 0 7 0 0 0 0 0 0\n" for name in ("", own, 9999)))
    used = machine._others_ns(tmp_path)
    assert used is not None
    assert 0 <= 1000 * 10**9 - used <= time.process_time_ns()
    assert machine._others_ns(tmp_path / "nowhere") is None
    assert machine.busy_text(UNREADABLE) is None


class Notes(Listener):
    def __init__(self) -> None:
        self.busy = 0

    def noted(self, text: str) -> None:
        self.busy += text.startswith("! Other programs use at least 40 % of the processors now: times will be inflated")


@pytest.mark.slow
def test_a_busy_machine_is_told_once_before_the_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "two.yaml"
    file.write_text(
        "{workload: surrogate, adapters: [serial], budget: {trials: 1, epochs_per_trial: 1}, seeds: [0, 1], warm_up: false}"
    )
    monkeypatch.setattr(machine, "look", lambda *_, **__: replace(QUIET, others_percent=40.0))
    listener = Notes()
    execute(PlanRequest(plan=make_plan(load_matrix(file)), results=tmp_path / "results", listener=listener))
    assert listener.busy == 1


# --- what later looks are held to ---


def test_drift_is_held_to_the_fastest_look_of_the_folder_and_change_to_the_first() -> None:
    fast = replace(QUIET, sentinel_ns=QUIET.sentinel_ns // 2)
    assert names(notes(QUIET, [QUIET, fast, QUIET])) == ["machine_drift"]
    other = replace(QUIET, governor="powersave")
    assert names(notes(QUIET, [other, QUIET, QUIET])) == ["machine_changed"]


def test_what_is_no_look_is_left_out_of_those_of_the_folder() -> None:
    busy, later = replace(QUIET, load_1min=5.0), replace(QUIET, sentinel_ns=1)
    assert stored_states([None, {}, *map(plain, (busy, QUIET, later))]) == [busy, QUIET, later]
    odd = [None, "odd", {"sentinel_ns": 0}, {"sentinel_ns": "fast"}, {**plain(QUIET), "governor": 3}]
    assert stored_states(odd) == []


def test_the_guard_holds_a_resumed_matrix_to_its_earlier_looks(tmp_path: Path) -> None:
    fast = replace(look(tmp_path), sentinel_ns=1)
    assert ["machine_drift" in names(Guard(tmp_path, looks).look()[1]) for looks in ([fast], [])] == [True, False]


# --- readings ---


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """Return a /proc and a /sys of our own: two processors, 8 of 16 GB free, throttled nine times."""
    proc, sys_ = tmp_path / "proc", tmp_path / "sys"
    cpus = sys_ / machine.CPUS
    for path, text in {
        proc / "meminfo": "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n",
        sys_ / machine.CLOCK_SOURCE: "hpet\n",
        cpus / "cpu0/thermal_throttle/core_throttle_count": "2\n",
        cpus / "cpu0/thermal_throttle/package_throttle_count": "3\n",
        cpus / "cpu1/thermal_throttle/core_throttle_count": "4\n",
        cpus / "cpu0/cpufreq/scaling_governor": "powersave\n",
        cpus / "cpu1/cpufreq/scaling_governor": "performance\n",
        cpus / "cpu0/cpufreq/scaling_max_freq": "2000000\n",
        cpus / "cpu0/cpufreq/cpuinfo_max_freq": "4000000\n",
        cpus / "cpu1/cpufreq/scaling_max_freq": "4000000\n",
        cpus / "cpu1/cpufreq/cpuinfo_max_freq": "4000000\n",
        cpus / "cpufreq/unrelated": "1\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return proc, sys_


def test_what_is_not_there_or_damaged_is_none(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    readings = (machine.throttle_count, machine.governor, machine.frequency_limit, machine.free_bytes)
    assert [reading(bare) for reading in readings] == [None] * 4
    assert memory(bare) == (None, None)
    bare.mkdir()
    (bare / "meminfo").write_text("MemTotal: much\n")
    assert memory(bare) == (None, None)


def test_a_look_puts_the_readings_together(trees: tuple[Path, Path], tmp_path: Path) -> None:
    proc, sys_ = trees
    state = look(tmp_path, proc, sys_)
    assert (state.throttle_count, state.clock_source, state.governor) == (9, "hpet", "performance,powersave")
    assert (state.memory_available_bytes, state.memory_total_bytes) == (8_192_000_000, 16_384_000_000)
    assert state.frequency_limit == 0.5
    assert state.survivors == ()
    assert (state.disk_free_bytes or 0) > 0
    assert set(names(notes(state, [state]))) == {"slow_clock_source", "frequency_limited"}


def test_a_survivor_of_a_run_is_seen_but_not_by_a_process_of_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with waiting(env={**os.environ, RESULTS_MARK: str(tmp_path.resolve())}) as survivor:
        state = look(tmp_path)
        assert [line.partition(":")[0] for line in state.survivors] == [str(survivor.pid)]
        assert "earlier_survivor" in names(notes(state, [state]))
        monkeypatch.setenv(RESULTS_MARK, str(tmp_path.resolve()))
        assert look(tmp_path).survivors == ()


class Sleeping:
    """A digest during which this thread does not run, as if another program had its core."""

    SECONDS = 0.05

    def update(self, _: bytes) -> None:
        """Do nothing."""

    def digest(self) -> bytes:
        time.sleep(self.SECONDS)
        return b""


def test_a_sentinel_that_waits_for_its_core_takes_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.run.machine.hashlib.sha256", Sleeping)
    assert machine._sentinel() < 0.2 * Sleeping.SECONDS * 1e9
