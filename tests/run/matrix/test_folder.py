"""The results folder: lock, plan, what a kill may leave in it."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from command_line import write_file
from fake_plugins import register
from tuneoff.base.layout import LOCK, PLAN
from tuneoff.errors import ResultsError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import Plan, make_plan
from tuneoff.record import results_folder as folder_module
from tuneoff.record.endings import KILLED, UNWRITABLE
from tuneoff.record.results_folder import ResultsFolder, came_to_end, read_plan
from tuneoff.run.run_ends import holder, run_ends
from tuneoff.run.supervisor.guardian import Guardian

FILE = """
name: one
workload: curve
search_space: {rate: {type: float, low: 0.1, high: 1.0}}
sampler: random
budget: {trials: 2, epochs_per_trial: 1}
adapters: [plain]
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    register(monkeypatch)
    return make_plan(load_matrix(write_file(tmp_path / "one.yaml", FILE)))


def test_a_new_folder_holds_the_plan_and_every_run_is_planned(tmp_path: Path, plan: Plan) -> None:
    with ResultsFolder(tmp_path / "r", plan, resume=False):
        assert read_plan(tmp_path / "r").plan_id == plan.plan_id
        assert {end.status for end in run_ends(tmp_path / "r")} == {"planned"}


def test_a_folder_in_use_is_refused_and_a_copy_by_hard_links_releases_no_lock(tmp_path: Path, plan: Plan) -> None:
    results, copy = tmp_path / "r", tmp_path / "copy"
    with ResultsFolder(results, plan, resume=False):
        shutil.copytree(results, copy, copy_function=os.link)
        for path in (results, copy):
            with pytest.raises(ResultsError, match=rf"in use by another tuneoff command \(pid {os.getpid()}\)"):
                ResultsFolder(path, plan, resume=True)
    with ResultsFolder(results, plan, resume=True), ResultsFolder(copy, plan, resume=True):
        with pytest.raises(ResultsError, match="in use"):
            ResultsFolder(results, plan, resume=True)
        assert not (results / LOCK).samefile(copy / LOCK)


def test_a_folder_whose_command_is_dead_is_not_held_by_the_process_that_has_its_pid_now(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ResultsFolder(tmp_path, plan, resume=False):
        assert (holder(tmp_path).pid, holder(tmp_path).works) == (os.getpid(), True)
    (tmp_path / LOCK).write_text(f"{os.getpid()}\n")
    assert (holder(tmp_path).pid, holder(tmp_path).works) == (os.getpid(), False)
    with monkeypatch.context() as patched:  # into a process of somebody else nobody may look
        patched.setattr(os, "listdir", Mock(side_effect=PermissionError))
        assert holder(tmp_path).works


def test_a_command_waits_while_the_guardian_of_a_dead_one_cleans_up(tmp_path: Path, plan: Plan) -> None:
    ResultsFolder(tmp_path / "r", plan, resume=False).close()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "r" / LOCK).write_text(f"{dead.pid}\n")
    guardian = os.open(tmp_path / "r" / LOCK, os.O_RDWR)
    fcntl.flock(guardian, fcntl.LOCK_EX)
    opened: list[ResultsFolder] = []
    resuming = threading.Thread(target=lambda: opened.append(ResultsFolder(tmp_path / "r", plan, resume=True)))
    resuming.start()
    resuming.join(0.3)
    assert resuming.is_alive()
    assert opened == []
    os.close(guardian)
    resuming.join(10)
    assert len(opened) == 1
    opened[0].close()


def test_a_guardian_that_still_cleans_up_is_to_be_waited_for_and_not_killed(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "CLEANING_SECONDS", 0.1)
    killed = ResultsFolder(tmp_path / "r", plan, resume=False)
    guardian = Guardian(tmp_path / "r", killed.lock)
    killed.close()
    (tmp_path / "r" / LOCK).write_text("4194303\n")
    try:
        with pytest.raises(ResultsError, match=rf"guardian \(pid {guardian._process.pid}\).*; wait for its end") as found:
            ResultsFolder(tmp_path / "r", plan, resume=True)
        assert "kill" not in str(found.value)
    finally:
        guardian.dismiss()


@pytest.mark.parametrize("number", UNWRITABLE)
def test_a_command_that_could_not_write_says_so_to_the_next_one(tmp_path: Path, plan: Plan, number: int) -> None:
    first = ResultsFolder(tmp_path / "r", plan, resume=False)
    first.note_unwritable(number)
    first.close()
    assert came_to_end(tmp_path / "r") is False
    assert holder(tmp_path / "r").pid is None
    with ResultsFolder(tmp_path / "r", plan, resume=True) as folder:
        assert folder.earlier_end == UNWRITABLE[number]
    with ResultsFolder(tmp_path / "r", plan, resume=True) as folder:  # the one before it wrote its pid there
        assert folder.earlier_end == KILLED


def test_a_folder_whose_command_was_killed_while_it_wrote_the_plan_can_be_used(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / f".{PLAN}.77.tmp").write_text('{"form')
    (tmp_path / "r" / LOCK).touch()
    ResultsFolder(tmp_path / "r", plan, resume=False).close()


@pytest.mark.parametrize(
    ("change", "resume", "message"),
    [
        (lambda plan: plan, False, "already holds results of this plan; add --resume"),
        (lambda plan: dataclasses.replace(plan, runs=plan.runs[:-1]), True, "holds the runs of another plan"),
        (lambda plan: dataclasses.replace(plan, analysis={"margin": 1}), True, "`analysis`, which is frozen"),
    ],
)
def test_a_folder_of_another_plan_is_refused_in_one_line(  # type: ignore[no-untyped-def]
    tmp_path: Path, plan: Plan, change, resume: bool, message: str
) -> None:
    ResultsFolder(tmp_path / "r", plan, resume=False).close()
    with pytest.raises(ResultsError, match=message):
        ResultsFolder(tmp_path / "r", change(plan), resume=resume)


def test_seeds_are_added_to_a_folder_whose_analysis_stays(tmp_path: Path, plan: Plan) -> None:
    def planned(seeds: str) -> Plan:
        return make_plan(load_matrix(write_file(tmp_path / "file.yaml", FILE), {"seeds": seeds}))

    few, more, others = map(planned, ("0-1", "0-3", "1-3"))
    ResultsFolder(tmp_path / "r", few, resume=False).close()
    more = dataclasses.replace(more, analysis=few.analysis)
    with pytest.raises(ResultsError, match="another plan"):
        ResultsFolder(tmp_path / "r", more, resume=False)
    with pytest.raises(ResultsError, match="another plan"):
        ResultsFolder(tmp_path / "r", dataclasses.replace(others, analysis=few.analysis), resume=True)
    ResultsFolder(tmp_path / "r", more, resume=True).close()
    known = read_plan(tmp_path / "r")
    assert (known.plan_id, known.analysis_digest, known.added_seeds) == (more.plan_id, few.analysis_digest, (2, 3))
    assert few.added_seeds == ()


def test_files_that_are_not_tuneoff_s_stay_and_runs_without_a_plan_are_refused(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "log").write_text("of the shell")
    ResultsFolder(tmp_path, plan, resume=False).close()
    assert (tmp_path / "log").read_text() == "of the shell"
    (tmp_path / PLAN).unlink()
    (tmp_path / "runs").mkdir()
    with pytest.raises(ResultsError, match=f"holds runs and no {PLAN}"):
        ResultsFolder(tmp_path, plan, resume=False)


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        ("power: 'one:Meter'", "power"),
        ("carbon: {zone: ESP}", "carbon"),
        ("prices: none", "prices"),
        ("analysis: {margin_percent: 1}", "analysis"),
    ],
)
def test_a_resume_with_another_meter_intensity_or_prices_is_refused(tmp_path: Path, plan: Plan, parts: str, key: str) -> None:
    ResultsFolder(tmp_path / "r", plan, resume=False).close()
    other = make_plan(load_matrix(write_file(tmp_path / "other.yaml", f"{FILE}{parts}\n")))
    with pytest.raises(ResultsError, match=f"begun with another `{key}`, which is frozen since; undo that change"):
        ResultsFolder(tmp_path / "r", other, resume=True)
