"""What may be tried again after a process died."""

from __future__ import annotations

from pathlib import Path

import pytest

from trial_runs import trial_context
from tuneoff.base.process_limits import SlotLimits
from tuneoff.run.trial.faults import KernelKills, Retries, kill_cause, note_kill

SIGKILL = -9


@pytest.fixture
def groups(tmp_path: Path) -> list[Path]:
    """Two memory control groups without a kill."""
    folders = [tmp_path / "group0", tmp_path / "group1"]
    for folder in folders:
        folder.mkdir()
        kill_for_memory(folder, 0)
    return folders


@pytest.fixture
def retries(tmp_path: Path, groups: list[Path]) -> Retries:
    return Retries(
        trial_context(tmp_path, slots=2, limits=tuple(SlotLimits(memory_cgroup=str(group)) for group in groups)), limit=1
    )


def kill_for_memory(group: Path, total: int) -> None:
    (group / "memory.events").write_text(f"low 0\noom {total}\noom_kill {total}\n")


@pytest.mark.parametrize(
    ("attempt", "exit_code", "expected"), [(1, -9, True), (1, None, True), (1, 0, False), (1, -11, False), (2, -9, False)]
)
def test_only_an_end_by_a_signal_is_tried_again_and_only_as_often_as_allowed(
    tmp_path: Path, attempt: int, exit_code: int | None, expected: bool
) -> None:
    assert Retries(trial_context(tmp_path), limit=1).may_retry("t0", attempt, exit_code, 0) is expected


def test_what_the_supervisor_killed_is_not_tried_again(tmp_path: Path) -> None:
    retries = Retries(trial_context(tmp_path), limit=1)
    note_kill(tmp_path, "t0", 1, "timed out")
    assert kill_cause(tmp_path, "t0", 1) == "timed out"
    assert not retries.may_retry("t0", 1, SIGKILL, 0)
    assert retries.may_retry("t1", 1, SIGKILL, 0)


def test_a_kill_for_memory_is_held_against_its_own_trial_alone(retries: Retries, groups: list[Path]) -> None:
    kill_for_memory(groups[0], 2)  # a process and its child
    assert retries.may_retry("t1", 1, SIGKILL, 1)
    assert not retries.may_retry("t0", 1, SIGKILL, 0)
    assert retries.may_retry("t2", 1, SIGKILL, 0)
    kill_for_memory(groups[0], 3)
    assert not retries.may_retry("t3", 1, SIGKILL, 0)


def test_a_kill_for_memory_of_a_last_attempt_is_not_held_against_the_next_trial(retries: Retries, groups: list[Path]) -> None:
    kill_for_memory(groups[0], 1)
    assert not retries.may_retry("t0", 2, SIGKILL, 0)
    assert retries.may_retry("t1", 1, SIGKILL, 0)


def test_where_the_slot_is_unknown_each_slot_with_a_kill_stands_for_one_trial(retries: Retries, groups: list[Path]) -> None:
    for group in groups:
        kill_for_memory(group, 1)
    assert not retries.may_retry("t0", 1, 7, None)  # its own exit code: no kill is its
    assert [retries.may_retry(f"t{number}", 1, None, None) for number in (1, 2, 3)] == [False, False, True]


def test_both_versions_of_control_groups_are_read(tmp_path: Path) -> None:
    group = tmp_path / "v1"
    group.mkdir()
    (group / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    retries = Retries(
        trial_context(tmp_path, limits=tuple(SlotLimits(memory_cgroup=str(path)) for path in (group, tmp_path / "none"))), limit=1
    )
    assert not retries.may_retry("t0", 1, SIGKILL, 0)
    assert retries.may_retry("t1", 1, SIGKILL, 1)


def test_a_kill_of_a_trial_that_ended_by_itself_is_held_against_no_other(
    tmp_path: Path, retries: Retries, groups: list[Path]
) -> None:
    kills = KernelKills(str(groups[0]))
    assert not kills.are_new()
    kill_for_memory(groups[0], 1)  # of a child of the trial, which then failed of that
    assert kills.are_new()
    kills.claim(tmp_path, 0)
    assert retries.may_retry("t1", 1, SIGKILL, 0)
    kill_for_memory(groups[0], 2)  # negative control: nobody claimed it
    assert not retries.may_retry("t2", 1, SIGKILL, 0)
