"""Which sizes surround a request, who can do what is asked for, files of faults, and the command; what is said: tests/corpus."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.made_choices import listing, made_results, runs_of
from builders.made_runs import write_results
from command_line import Call
from tuneoff.base.layout import PLAN
from tuneoff.cli import report
from tuneoff.errors import ExperimentError, ResultsError, UnknownNameError
from tuneoff.judge.choice.filters import filtered
from tuneoff.judge.choice.request import NEAR, Bracket, Exclusion, Request, bracket, candidate_of, spans
from tuneoff.judge.fault_results import read_faults
from tuneoff.registry import list_adapters

pytest.importorskip("scipy")


def points(*settings: tuple[float, float]) -> list[dict[str, tuple[float, float]]]:
    """Return settings of (workers, seconds per trial)."""
    return [{"workers": (workers, workers), "trial_seconds": (seconds, seconds)} for workers, seconds in settings]


GRID = points((1, 1), (4, 1), (1, 60), (4, 60))
UNKNOWN = {"workers": (4.0, 4.0)}
SIZES = st.floats(0.01, 1000)


@pytest.mark.parametrize(
    ("asked", "measured", "found"),
    [
        ({}, GRID, Bracket(used=(0, 1, 2, 3), is_exact=True)),
        ({"workers": 4}, points((1, 1), (2, 1), (8, 1), (16, 1)), Bracket(used=(1, 2))),
        ({"workers": 2, "trial_seconds": 10}, GRID, Bracket(used=(0, 1, 2, 3))),
        ({"workers": 4, "trial_seconds": 1}, points((1, 1), (4, 60)), Bracket(outside={})),
        ({"workers": 5, "trial_seconds": 10}, GRID, Bracket(outside={"workers": (1, 4)})),
        ({"workers": 4, "trial_seconds": 60}, [*GRID, UNKNOWN], Bracket(used=(3,), is_exact=True)),
        ({"trial_seconds": 60 * NEAR * 0.999}, GRID, Bracket(used=(2, 3), is_exact=True)),
        ({"trial_seconds": 60 * NEAR * 1.001}, GRID, Bracket(outside={"trial_seconds": (1, 60)})),
    ],
)
def test_what_was_measured_at_the_request_is_used_else_what_surrounds_it(
    asked: dict[str, float], measured: list[dict[str, tuple[float, float]]], found: Bracket
) -> None:
    assert bracket(asked, measured) == found


@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=8), SIZES, SIZES)
def test_what_is_used_surrounds_the_request(settings: list[tuple[float, float]], workers: float, seconds: float) -> None:
    measured = points(*settings)
    found = bracket({"workers": workers, "trial_seconds": seconds}, measured)
    assert bool(found.used) != (found.outside is not None)
    if found.used:
        ranges = spans([measured[place] for place in found.used])
        assert ranges["workers"][0] <= workers <= ranges["workers"][1]
        assert ranges["trial_seconds"][0] / NEAR <= seconds <= ranges["trial_seconds"][1] * NEAR


def kinds(adapter: str, **asked: Any) -> list[Exclusion]:
    one = next(one for one in list_adapters() if one.plugin.name == adapter)
    return [obstacle.kind for obstacle in candidate_of(one, Request(**asked)).obstacles]


def test_the_built_in_adapters_answer_a_request_of_each_kind() -> None:
    assert kinds("syne-tune", platform="kubernetes") == [Exclusion.TUNEOFF]
    assert kinds("serial", platform="kubernetes", must_retry=True) == kinds("katib", platform="kubernetes") == []
    assert kinds("syne-tune", sampler="cmaes") == [Exclusion.FRAMEWORK]


def test_a_mistyped_name_is_refused_and_the_nearest_named() -> None:
    known = [listing("a", platforms=("kubernetes",))]
    unread: Any = None  # it is refused first
    with pytest.raises(UnknownNameError, match="no platform named 'kubernets'; did you mean 'kubernetes'"):
        filtered(unread, known, [], Request(platform="kubernets"))
    with pytest.raises(UnknownNameError, match="no sampler named 'x'"):
        filtered(unread, known, [], Request(sampler="x"))


@pytest.mark.parametrize("size", ["workers", "trial_seconds", "trials"])
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(size: str, value: Any) -> None:
    with pytest.raises(ExperimentError, match="must be above 0"):
        Request(**{size: value})


# --- files of faults ---


def fault(adapter: str, outcome: str | None, kind: str = "sigkill") -> dict[str, Any]:
    return {"adapter": adapter, "setting": "adapter", "fault": kind, "outcome": outcome, "reason": "made", "seconds": 1.0}


def write_faults(path: Path, *runs: dict[str, Any], **more: Any) -> Path:
    path.write_text(json.dumps({"about": {}, "runs": runs, "exit_code": 0, **more}))
    return path


@pytest.mark.parametrize("text", ["", "[]", '{"runs": [{}]}', '{"runs": 3}', "\xff", '{"a": 1}'])
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    with pytest.raises(ResultsError, match="is not what `tuneoff faults --json` writes"):
        read_faults([tmp_path / "x.json"])


def test_faults_go_by_the_names_that_the_files_know(tmp_path: Path) -> None:
    for path, problem in ((tmp_path, r"holds no \*\.json"), (tmp_path / "missing.json", "cannot be read")):
        with pytest.raises(ResultsError, match=problem):
            read_faults([path])
    runs = [fault("serial", "recovered", kind) for kind in ("none", "sigkill")]
    path = write_faults(tmp_path / "faults.json", *runs, faults=["none", "raise", "nan"])
    assert {run.file for run in read_faults([path])} == {str(path)}
    assert len(read_faults([tmp_path], ["raise", "nan", "sigkill"])) == 2
    for name in ("worker_killed", "none"):
        with pytest.raises(UnknownNameError, match=f"no fault named '{name}'.*; known: nan, raise, sigkill"):
            read_faults([tmp_path], [name])


# --- the command ---


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder in which ray-tune is faster than optuna and as good."""
    return write_results(made_results(runs_of("ray-tune"), runs_of("optuna", seconds=2.0), folder=tmp_path / "results" / "old"))


def test_a_filtered_report_takes_the_newest_folder_and_names_its_runs(call: Call, results: Path) -> None:
    answer = call(*report.EXAMPLE.split()[1:])
    assert (answer.code, answer.err) == (0, "")
    assert "Use ray-tune." in answer.out
    told = json.loads(call("report", results, "--must-retry", "--json").out)
    runs = [run for row in told["choice"]["settings"][0]["rows"] for column in row["columns"].values() for run in column["runs"]]
    assert len(runs) == 20
    assert all((results / "runs" / run).is_dir() for run in runs)
    write_results(made_results([(spec, None) for spec, _ in runs_of("optuna")], folder=Path("results/new")))
    os.utime(Path("results/new") / PLAN, ns=(2**62, 2**62))
    told = "results/new is the newest folder, but no run of it has ended; the newest with runs is results/old\n"
    assert call("report", "--text").err.startswith(told)


def test_a_report_reads_faults_and_names_who_does_not_survive_on_its_page_too(call: Call, results: Path, tmp_path: Path) -> None:
    path = write_faults(tmp_path / "faults.json", fault("ray-tune", "run aborted"), fault("optuna", "recovered"))
    asked = ("report", results, "--faults", path, "--must-survive", "sigkill")
    page = Path(call(*asked).out.strip()).read_text()
    for text in (" ".join(call(*asked, "--text").out.split()), page):
        assert "ray-tune: not under faults: sigkill through its adapter: run aborted, made" in text
        assert "Nothing to choose from: only optuna meets the request and was measured." in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--workers", "0"], "--workers must be above 0, but got 0"),
        (["--must-survive", "sigkil"], "--must-survive needs --faults"),
        (["--platform", "moon"], "no platform named 'moon'"),
    ],
)
def test_a_filter_that_is_none_is_refused_in_one_line(call: Call, results: Path, arguments: list[str], words: str) -> None:
    answer = call("report", results, *arguments)
    assert answer.code == 2
    assert words in answer.line


def test_what_was_not_measured_is_refused_and_no_page_is_written(call: Call, results: Path, tmp_path: Path) -> None:
    answer = call("report", results, "--workers", "64")
    assert (answer.code, answer.err) == (1, "")
    assert answer.out.startswith("Not measured, so no claim: 64 workers.\n")
    assert not (results / "report").exists()
    assert json.loads(call("report", results, "--workers", "64", "--json").out)["choice"]["settings"] == []
    empty = write_results(made_results([(spec, None) for spec, _ in runs_of("ray-tune")], folder=tmp_path / "empty"))
    answer = call("report", empty, "--must-retry", "--text")
    assert answer.code == 1
    assert "! 10 of 10 runs have not ended." in answer.out
