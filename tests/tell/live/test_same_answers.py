"""`watch` says of a folder what `status`, `report` and `bundle` say of it."""

from __future__ import annotations

import errno
import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders.live_folders import Folder
from builders.made_runs import made_run
from command_line import Call
from tuneoff.base.json_values import BEYOND
from tuneoff.judge.results import read_results
from tuneoff.judge.runs import grouped
from tuneoff.record import run_ends as run_ends_module
from tuneoff.record.endings import KILLED, UNWRITABLE
from tuneoff.record.metric_value import known
from tuneoff.record.results_folder import LOCK
from tuneoff.record.run_ends import ELSEWHERE, Holder, holder, run_ends
from tuneoff.tell.live.sentences import lines, to_json
from tuneoff.tell.live.state import LiveState, cells_of
from tuneoff.tell.live.watcher import Watcher


def statuses(state: LiveState) -> dict[str, str]:
    return {cell.run_id: cell.status for cell in cells_of(state.rows)}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "results")


def test_the_statuses_are_those_of_the_results_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "results", ("serial", "optuna", "katib"), seeds=4, skipped="katib")
    folder.end("serial", 0, "interrupted")
    folder.end("serial", 0, execution="2")
    folder.end("serial", 1, "failed", charged="workload")
    folder.end("optuna", 0, "timeout", charged="infrastructure")
    folder.end("optuna", 0, "interrupted", execution="2")
    repeated = made_run(folder.specs["optuna", 1], [], execution="3", environment={"repeat": {"number": 1}})
    folder.end("optuna", 1)
    folder.write(replace(repeated, status="failed", reason="again", charged="workload", started_at="2020"))
    folder.begin("optuna", 2)  # and its command was killed before there was a record
    folder.end("serial", 2, "failed", charged="infrastructure")
    folder.begin("serial", 2)
    found = statuses(Watcher(folder.path).look())
    assert found == {end.run_id: end.status for end in run_ends(folder.path)}
    runs = [run for group in grouped(read_results(folder.path)) for run in group.runs]
    assert found == {run.run_id: run.status for run in runs}
    assert found[folder.specs["optuna", 2].run_id] == "interrupted"
    assert set(found.values()) == {"done", "failed", "interrupted", "skipped", "planned"}


@pytest.mark.parametrize(
    ("failed", "seconds", "shown"), [(0, 2.0, "2.00"), (1, 3.0, "3.00"), (2, None, "failed"), (3, None, "failed")]
)
def test_what_frameworks_came_to_is_what_status_says(
    folder: Folder, call: Call, failed: int, seconds: float | None, shown: str
) -> None:
    """The job time is without the test: the runs took ten seconds in all."""
    for seed in range(3):
        metrics = {"time.jct_without_test": known(1000.0 * (seed + 1), "ms"), "quality.validation": known(0.5 + seed, "accuracy")}
        folder.end("serial", seed, "failed" if seed < failed else "done", metrics=metrics if seed >= failed else {})
    state = Watcher(folder.path).look()
    best = 2.5 if failed < 3 else None
    reason = {} if seconds is not None else {"seconds_reason_if_null": BEYOND}
    assert to_json(state)["so_far"] == [{"name": "serial", "seconds": seconds, **reason, "best": best}]
    assert [line for line in lines(state) if line.startswith("so far")] == [
        f"so far: serial {f'{seconds:.0f} s' if seconds is not None else 'failed'}{', best 2.5' if best else ''}"
    ]
    out = call("status", folder.path).out
    assert re.findall(r"^serial .*/3 +(\S+) *(\S*)$", out, re.MULTILINE) == [(shown, "2.5000" if best else "")]


def test_a_run_that_is_repeated_at_the_moment_runs(folder: Folder) -> None:
    folder.end("serial", 0, "interrupted")
    folder.end("serial", 1, "failed", charged="workload")  # final: it is not repeated
    folder.take()
    folder.begin("serial", 0, execution="2").write()
    ends = {end.run_id: (end.status, end.reason) for end in run_ends(folder.path)}
    assert ends[folder.specs["serial", 0].run_id] == ("running", None)
    assert ends[folder.specs["serial", 1].run_id][0] == "failed"
    assert statuses(Watcher(folder.path).look())[folder.specs["serial", 0].run_id] == "running"


def test_a_run_that_ends_while_the_folder_is_looked_at_is_not_killed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.take()
    folder.begin("serial", 0).write()

    def looked_at_last(results: Path) -> Holder:
        found = holder(results)
        folder.end("serial", 0, execution="9")
        folder.leave(ended=True)
        return found

    monkeypatch.setattr(run_ends_module, "holder", looked_at_last)
    assert run_ends(folder.path)[0].status == "done"


@pytest.mark.parametrize(
    ("lock", "host", "status", "reason"),
    [
        (None, None, "running", None),
        (str(2**22 + 1), None, "interrupted", KILLED.reason),
        (str(2**22 + 1), "elsewhere", "running", ELSEWHERE),
        (f"e{errno.ENOSPC}", None, "interrupted", UNWRITABLE[errno.ENOSPC].reason),
        ("", "elsewhere", "interrupted", KILLED.reason),
    ],
)
def test_a_run_without_a_record_is_told_alike_everywhere(
    folder: Folder, lock: str | None, host: str | None, status: str, reason: str | None
) -> None:
    folder.take()
    begun = folder.begin("serial", 0, host=host)
    begun.write()
    if lock is not None:
        folder.leave(ended=False)
        (folder.path / LOCK).write_text(lock)
    (end,) = (end for end in run_ends(folder.path) if end.run_id == begun.spec.run_id)
    runs = [run for group in grouped(read_results(folder.path)) for run in group.runs]
    (judged,) = (run for run in runs if run.run_id == begun.spec.run_id)
    assert (end.status, end.reason) == (judged.status, judged.reason) == (status, reason)
    (cell,) = (cell for cell in cells_of(Watcher(folder.path).look().rows) if cell.run_id == begun.spec.run_id)
    assert (cell.status, cell.reason) == (status, None if status == "running" else reason)
