"""`tuneoff recommend` and `tuneoff diff` on folders: exit codes, JSON, and one line for bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from builders.made_choices import made_results, runs_of
from builders.made_runs import write_results
from command_line import Call
from tuneoff.cli import diff, recommend
from tuneoff.record.results_folder import PLAN

pytest.importorskip("scipy")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder in which ray-tune is faster than optuna and as good."""
    return write_results(made_results(runs_of("ray-tune"), runs_of("optuna", seconds=2.0), folder=tmp_path / "results" / "old"))


def run_ids(text: str) -> list[str]:
    return [word for line in text.splitlines() if "/runs: " in line for word in line.partition("/runs: ")[2].split()]


def test_recommend_names_who_is_better_and_cites_run_folders(call: Call, results: Path) -> None:
    answer = call("recommend", results, "--workers", "2", "--must-resume")
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


def test_recommend_says_who_can_on_a_platform_that_was_not_measured(call: Call, results: Path) -> None:
    answer = call("recommend", results, "--platform", "kubernetes")
    assert answer.code == 1
    assert answer.out.startswith("katib and optuna can do what is asked for, but were not measured at it")


def test_recommend_suggests_no_cluster_to_who_asks_for_none(call: Call, results: Path) -> None:
    found = json.loads(call("recommend", results, "--json").out)
    assert {"katib"}.isdisjoint({*found["capable"], *found["not_measured"], *found["recommended"]})
    assert found["how_to_measure"]
    assert not any("@" in line or "katib" in line for line in found["how_to_measure"])
    lines = [line for line in call("recommend", results).out.splitlines() if "katib" in line or "kubernetes" in line]
    assert len(lines) == 1
    assert "--platform kubernetes" in lines[0]


def test_recommend_says_first_that_a_folder_is_unfinished(call: Call, tmp_path: Path) -> None:
    optuna = [(spec, None if spec.seed < 3 else record) for spec, record in runs_of("optuna")]
    path = write_results(made_results(runs_of("ray-tune"), optuna, folder=tmp_path / "at_work"))
    assert call("recommend", path).out.startswith("unfinished: 3 of 20 runs ")
    assert json.loads(call("recommend", path, "--json").out)["unfinished"] == [
        {"folder": str(path), "waiting": 3, "planned": 20},
    ]


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
        (["--sampler", "tpee"], "did you mean 'tpe'?"),
        (["--must-survive", "sigkil"], "no fault named 'sigkil'"),
        (["--must-survive", "sigkill"], "--must-survive needs --faults"),
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
    assert "no two results folders of the same file" in call(*diff.EXAMPLE.split()[1:]).line
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
