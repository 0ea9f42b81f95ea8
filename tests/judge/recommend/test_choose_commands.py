"""`tuneoff recommend` and `tuneoff diff` on folders: exit codes, JSON, and one line for bad input."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from builders.made_choices import made_results, runs_of
from builders.made_runs import write_results
from command_line import Call
from tuneoff.cli import diff, recommend
from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.record.results_folder import PLAN

pytest.importorskip("scipy")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder in which ray-tune is faster than optuna and as good."""
    return write_results(made_results(runs_of("ray-tune"), runs_of("optuna", seconds=2.0), folder=tmp_path / "results" / "old"))


def run_ids(text: str) -> list[str]:
    return [word for line in text.splitlines() if "/runs: " in line for word in line.partition("/runs: ")[2].split()]


def test_a_program_is_called_as_its_file_is(call: Call, tmp_path: Path) -> None:
    program = WorkloadSpec(name="command", target="m:W")
    ran = [runs_of("ray-tune", workload=program), runs_of("optuna", seconds=2.0, workload=program)]
    found = made_results(*ran, folder=tmp_path / "results" / "old")
    path = write_results(replace(found, plan=replace(found.plan, name="my-training")))
    assert call("recommend", path, "--workers", "2").out.startswith(
        "workload my-training, sampler random: ray-tune; optuna is dominated\n"
    )
    assert "Measured on workload my-training, with 10 trials" in " ".join(call("report", path, "--text").out.split())


def test_the_newest_folder_without_a_run_is_told_with_the_newest_that_has_one(call: Call, results: Path) -> None:
    assert (call("recommend").code, call("recommend").err) == (0, "")
    write_results(made_results([(spec, None) for spec, _ in runs_of("optuna")], folder=Path("results/new")))
    os.utime(Path("results/new") / PLAN, ns=(2**62, 2**62))
    old = results.relative_to(Path.cwd())
    text = f"results/new is taken, as the newest folder, but no run of it has ended; the newest with runs is {old}\n"
    for command in ("recommend", "report"):
        assert call(command, *(["--text"] if command == "report" else [])).err.startswith(text)


def test_recommend_names_who_is_better_and_cites_run_folders(call: Call, results: Path) -> None:
    answer = call("recommend", results, "--workers", "2", "--must-retry")
    assert answer.code == 0
    assert answer.out.startswith("workload null, sampler random: ray-tune; optuna is dominated\n")
    assert run_ids(answer.out) == []
    assert "20 runs" in answer.out
    ids = run_ids(call("recommend", results, "--runs").out)
    assert len(ids) == 20
    assert all((results / "runs" / run).is_dir() for run in ids)


def test_recommend_takes_the_newest_folder(call: Call, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(results.parents[1])
    assert call(*recommend.EXAMPLE.split()[1:]).code == 0


def test_recommend_refuses_what_is_outside_with_exit_code_1(call: Call, results: Path) -> None:
    answer = call("recommend", results, "--workers", "8", "--trial-seconds", "60")
    assert answer.code == 1
    assert "measured were 2 workers, 0.50 s per trial" in answer.out


def test_recommend_in_json_has_the_same_answer(call: Call, results: Path) -> None:
    found = json.loads(call("recommend", results, "--json").out)
    assert found["recommended"] == ["ray-tune"]
    assert found["exit_code"] == 0
    assert found["settings"][0]["measured"][0]["reasons"][0]["runs"][0]["folder"] == str(results)


def test_recommend_reads_faults(call: Call, results: Path, tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    runs = [
        {"adapter": name, "setting": "adapter", "fault": "sigkill", "outcome": outcome, "reason": "made", "seconds": 1.0}
        for name, outcome in (("ray-tune", "run aborted"), ("optuna", "recovered"))
    ]
    path.write_text(json.dumps({"about": {}, "runs": runs, "exit_code": 0}))
    answer = call("recommend", results, "--faults", path, "--must-survive", "sigkill")
    assert "ray-tune: not under faults: sigkill through its adapter: run aborted, made" in answer.out
    assert "optuna is the only one that can and was measured" in answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], "--workers must be above 0, but got 0"),
        (["--must-survive", "sigkil"], "--must-survive needs --faults"),
        (["--prefer", "beauty"], "invalid choice: 'beauty'"),
    ],
)
def test_recommend_refuses_bad_input_in_one_line(call: Call, results: Path, arguments: list[str], words: str) -> None:
    answer = call("recommend", results, *arguments)
    assert answer.code == 2
    assert words in answer.line


def test_diff_of_a_folder_with_itself_is_quiet(call: Call, results: Path) -> None:
    answer = call("diff", results, results)
    assert answer.code == 0
    assert answer.out.startswith("nothing changed beyond noise")


def test_diff_finds_a_planted_change_and_exits_with_1(call: Call, results: Path, tmp_path: Path) -> None:
    other = write_results(made_results(runs_of("ray-tune", seconds=1.5), runs_of("optuna", seconds=2.0), folder=tmp_path / "new"))
    answer = call("diff", results, other)
    assert answer.code == diff.CHANGED == 1
    assert "ray-tune random: time is worse, 1.5x, +0.50 s " in answer.out
    found = json.loads(call("diff", results, other, "--json").out)
    assert (found["exit_code"], found["has_changed"]) == (1, True)
    assert found["answer"][1] in answer.out


def test_diff_takes_the_two_newest_folders_of_the_same_file(call: Call, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(results.parents[1])
    assert "is the only one of" in call(*diff.EXAMPLE.split()[1:]).line
    newer = write_results(made_results(runs_of("ray-tune"), folder=results.with_name("new")))
    for place, folder in enumerate((results, newer)):
        os.utime(folder / PLAN, (place, place))
    answer = call(*diff.EXAMPLE.split()[1:])
    assert answer.code == 0
    assert [line for line in answer.out.splitlines() if line[:3] in ("A: ", "B: ")] == ["A: results/old", "B: results/new"]
    assert call("diff", results).code == 2


def test_diff_refuses_odd_folders_in_one_line(call: Call, results: Path, tmp_path: Path) -> None:
    assert call("diff", results, tmp_path).code == 5
    assert "is no results folder" in call("diff", results, tmp_path / "missing").line
    other = write_results(made_results(runs_of("ray-tune", trials=3), folder=tmp_path / "other"))
    answer = call("diff", results, other)
    assert answer.code == 2
    assert "have no run in common: budget.trials 10 became 3" in answer.line


def test_folders_without_a_run_that_is_done_are_read(call: Call, tmp_path: Path) -> None:
    nothing = [(spec, None) for spec, _ in runs_of("ray-tune")]
    empty = write_results(made_results(nothing, folder=tmp_path / "empty"))
    answer = call("recommend", empty)
    assert answer.code == 1
    assert answer.out.startswith("unfinished: 10 of 10 runs ")
    assert "were not measured at it" in answer.out
    assert call("diff", empty, empty).code == 0
