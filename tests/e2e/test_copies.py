"""Several jobs at the same time: each is held to its share of the machine, and neither a kill nor Ctrl-C leaves half of them."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import burning_workload
from e2e.following import Following
from e2e.matrix_runs import has_trained, start, write_matrix
from tuneoff.base.processes import command_line, descendants, kill
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import make_plan
from tuneoff.judge.results import read_results
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.supervisor import cgroups
from tuneoff.run.supervisor.cgroups import group_sites
from tuneoff.run.supervisor.limits import NOT_SHARED, OVER_SHARE, usable_processors
from tuneoff.trust.verify.results import verify
from waiting import until

pytestmark = pytest.mark.slow

WAIT_SECONDS = 60
BURNING = {"name": "burning_workload:Burning", "options": {"epoch_seconds": 1.0}}
NO_GROUPS = "import pathlib; from tuneoff.run.supervisor import cgroups; cgroups.ROOT = pathlib.Path('/nonexistent')"
LITTLE_MEMORY = """
import sys
if "tuneoff.run.supervisor.copies" in sys.orig_argv:
    from tuneoff.run.supervisor import limits
    limits.memory = lambda: (None, 500_000_000)
"""
has_groups = all(site.parent is not None for site in group_sites(("cpu", "memory")).values())


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(burning_workload.__file__).parent))


def file_of(folder: Path, **changes: Any) -> Path:
    workload = {"name": "sleep", "options": {"epoch_seconds": 0.5}}
    content = {"workload": workload, "budget": {"trials": 4, "epochs_per_trial": 1}, "power": "none", "copies": 2}
    return write_matrix(folder, **{**content, **changes})[0]


def burn(folder: Path, copies: int) -> list[RunRecord]:
    """Run jobs of two workers that take all the processor time that they get."""
    objective = {"metric": "validation_loss", "mode": "min"}
    changes: Mapping[str, Any] = {"workload": BURNING, "objective": objective}
    path = file_of(folder, copies=copies, budget={"trials": 2, "epochs_per_trial": 1}, **changes)
    execute(PlanRequest(plan=make_plan(load_matrix(path)), results=folder / "results"))
    return list(read_runs(folder / "results"))


def processors_used(record: RunRecord) -> float:
    """Return the CPU seconds of its trials per second in which any of them trained."""
    epochs = [epoch for trial in record.trials for attempt in trial.attempts for epoch in attempt.epochs]
    return sum(epoch.cpu_ns or 0 for epoch in epochs) / max(epoch.train_ns for epoch in epochs)


@pytest.mark.skipif(not has_groups, reason="no control group can limit CPU time and memory here")
def test_each_job_has_its_share_of_the_processors_and_of_the_memory(tmp_path: Path) -> None:
    records = burn(tmp_path, copies := 4)
    assert [record.status for record in records] == ["done"] * copies
    share = len(usable_processors()) / copies
    for record in records:
        limits = record.environment["limits"]["share"]
        assert limits["cpus"]["limit"] == share
        assert limits["memory_mb"]["limit"] == pytest.approx(record.environment["memory_total_bytes"] / copies / 1e6, rel=1e-6)
        assert all(limit["text"].startswith("cgroup v") for limit in limits.values())
        assert processors_used(record) < 1.3 * share
        assert {NOT_SHARED, OVER_SHARE}.isdisjoint(flag.name for flag in record.flags)
    assert verify(tmp_path / "results").problems == []
    assert [path for record in records for path in cgroups.ROOT.rglob(f"tuneoff-{record.execution_id}-*")] == []
    (tmp_path / "alone").mkdir()
    (alone,) = burn(tmp_path / "alone", 1)  # negative control
    assert "share" not in alone.environment["limits"]
    assert processors_used(alone) > 1.3 * share


def test_copies_run_at_the_same_time_count_as_one_run_and_say_so_where_they_take_what_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NO_GROUPS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plan = make_plan(load_matrix(file_of(tmp_path)))
    execute(PlanRequest(plan=plan, results=tmp_path / "results"))
    results = read_results(tmp_path / "results")
    assert ([run.spec.copy for run in plan.counted], [run.spec.copy for run in results.planned]) == ([0, 1], [0])
    for record in results.records:
        assert record.status == "done"
        assert [flag.name for flag in record.flags] == [NOT_SHARED]
        assert record.environment["limits"]["share"]["cpus"]["text"] == "no cpu controller"
    clocks = [record.clock for record in results.records]
    starts = [clock.start_monotonic_ns for clock in clocks if clock is not None]
    ends = [start + (record.steps[-1].ended_ns or 0) for start, record in zip(starts, results.records, strict=True)]
    assert max(starts) < min(ends)
    assert len({record.run_id for record in results.records}) == 2


@pytest.mark.skipif(not has_groups, reason="no control group can limit CPU time and memory here")
def test_a_copy_that_uses_up_its_share_of_the_memory_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(LITTLE_MEMORY)
    (tmp_path / "hungry.py").write_text(
        "def train(configuration, seed):\n    yield {'loss': len(bytearray(b'x') * 400_000_000)}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    objective = {"metric": "loss", "mode": "min"}
    path = file_of(tmp_path, workload="hungry:train", objective=objective, workers={"count": 1})
    execute(PlanRequest(plan=make_plan(load_matrix(path)), results=tmp_path / "results"))
    for record in read_runs(tmp_path / "results"):
        assert record.status == "failed"
        assert OVER_SHARE in {flag.name for flag in record.flags}


def began(file: Path, results: Path) -> subprocess.Popen[bytes]:
    """Start the matrix and return it once a trial of each copy has trained or begun."""
    process = start(file, results)
    until(lambda: len(list(results.glob("runs/*/*/events/*.jsonl"))) >= 4 and has_trained(results), WAIT_SECONDS)
    return process


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_ends_in_mid_run_leaves_nothing_and_repeats_all_copies(tmp_path: Path, how: signal.Signals) -> None:
    file, results = file_of(tmp_path, budget={"trials": 12, "epochs_per_trial": 1}), tmp_path / "results"
    following = Following()
    process = began(file, results)
    following.look(results)
    process.send_signal(how)
    process.wait(WAIT_SECONDS)
    until(lambda: not following.left(), WAIT_SECONDS)
    assert verify(results).problems == []
    again = start(file, results)
    assert again.wait(WAIT_SECONDS) == 0
    statuses = sorted((record.run_spec().copy, record.status) for record in read_runs(results))
    assert statuses == [(0, "done"), (0, "interrupted"), (1, "done"), (1, "interrupted")]
    assert verify(results).problems == []


def test_a_copy_whose_supervisor_is_killed_fails_and_is_repeated_with_the_others(tmp_path: Path) -> None:
    file, results = file_of(tmp_path, budget={"trials": 12, "epochs_per_trial": 1}), tmp_path / "results"
    process = began(file, results)
    supervisors = [pid for pid in descendants(process.pid) if "tuneoff.run.supervisor.copies" in command_line(pid, None)]
    assert len(supervisors) == 2
    kill(supervisors[0])
    assert process.wait(WAIT_SECONDS) == 1
    ended = {record.status: record for record in read_runs(results)}
    assert set(ended) == {"done", "failed"}
    assert (ended["failed"].charged, ended["failed"].reason) == (
        "infrastructure",
        "the process that supervised this copy of the job ended",
    )
    assert start(file, results).wait(WAIT_SECONDS) == 0
    by_copy = sorted((record.run_spec().copy, record.status) for record in read_runs(results))
    assert [status for _, status in by_copy].count("done") == 3
    assert verify(results).problems == []
