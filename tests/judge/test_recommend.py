"""Which settings surround a request, who dominates whom, files of faults, and the commands; what is said: tests/corpus."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.made_choices import listing, made_results, runs_of, verdict
from builders.made_runs import write_results
from command_line import Call
from tuneoff.cli import recommend
from tuneoff.errors import ExperimentError, ResultsError, UnknownNameError
from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.fault_results import read_faults
from tuneoff.judge.recommend.eligibility import No, candidate, check_request
from tuneoff.judge.recommend.recommendation import Dominance, dominances, front
from tuneoff.judge.recommend.request import NEAR, Bracket, Request, bracket, spans
from tuneoff.record.results_folder import PLAN
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
        ({"workers": 4}, GRID, Bracket(used=(1, 3), is_exact=True)),
        ({"workers": 4}, points((1, 1), (2, 1), (8, 1), (16, 1)), Bracket(used=(1, 2))),
        ({"workers": 2, "trial_seconds": 10}, GRID, Bracket(used=(0, 1, 2, 3))),
        ({"workers": 4, "trial_seconds": 10}, points((4, 1), (4, 60)), Bracket(used=(0, 1))),
        ({"workers": 4, "trial_seconds": 1}, points((1, 1), (4, 60)), Bracket(outside={})),
        ({"workers": 5, "trial_seconds": 10}, GRID, Bracket(outside={"workers": (1, 4)})),
        ({"workers": 4.2}, GRID, Bracket(outside={"workers": (1, 4)})),
        ({"workers": 4, "trial_seconds": 60}, [*GRID, UNKNOWN], Bracket(used=(3,), is_exact=True)),
        ({"trial_seconds": 60}, [UNKNOWN], Bracket(outside={})),
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


LABELS = ("a", "b", "c", "d")
QUESTIONS = ("quality", "time", "energy")
OUTCOMES = st.sampled_from(list(Outcome))
NOTHING_SHOWN = (Outcome.UNDECIDED, Outcome.NOT_JUDGED)


def pairs(found: Sequence[Dominance]) -> set[tuple[str, str]]:
    return {(one.one, one.other) for one in found}


@st.composite
def verdict_sets(draw: st.DrawFn) -> list[Verdict]:
    """Return any verdicts of all pairs on all questions, some of them without figures."""
    return [
        verdict(one, other, draw(OUTCOMES), of, figures=draw(st.integers(0, 5)) > 0)
        for one, other in combinations(LABELS, 2)
        for of in QUESTIONS
    ]


@pytest.mark.parametrize("outcome", Outcome)
def test_better_in_one_question_and_as_good_in_the_other_dominates(outcome: Outcome) -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER, "time"), verdict("a", "b", outcome, "quality")]
    found = dominances(verdicts, ("a", "b"), {})
    assert bool(found) == (outcome not in (*NOTHING_SHOWN, Outcome.WORSE))
    assert bool(dominances(verdicts[1:], ("a", "b"), {})) == (outcome in (Outcome.BETTER, Outcome.WORSE))


def test_a_question_without_figures_says_nothing_and_is_named() -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER), verdict("a", "b", Outcome.NOT_JUDGED, "energy", figures=False)]
    (found,) = dominances(verdicts, ("a", "b"), {})
    assert found.without_figures == ("energy",)


def test_who_fails_more_often_dominates_nobody() -> None:
    verdicts = [verdict("a", "b", Outcome.BETTER)]
    assert dominances(verdicts, ("a", "b"), {"a": 1, "b": 0}) == []
    assert pairs(dominances(verdicts, ("a", "b"), {"a": 1, "b": 1})) == {("a", "b")}


def test_a_cycle_leaves_its_members_on_the_front() -> None:
    cycle = [verdict("a", "b", Outcome.BETTER), verdict("b", "c", Outcome.BETTER), verdict("c", "a", Outcome.BETTER)]
    found = dominances([*cycle, verdict("a", "d", Outcome.BETTER)], LABELS, {})
    assert front(LABELS, found) == ["a", "b", "c"]


@given(verdict_sets(), OUTCOMES, st.permutations(LABELS))
def test_a_dominance_is_of_its_pair_alone_and_somebody_is_always_on_the_front(
    verdicts: list[Verdict], outcome: Outcome, labels: list[str]
) -> None:
    before = dominances(verdicts, LABELS, {})
    further = [verdict(label, "e", outcome, of) for label in LABELS for of in QUESTIONS]
    after = pairs(dominances([*verdicts, *further], (*LABELS, "e"), {}))
    assert {pair for pair in after if "e" not in pair} == pairs(before)
    assert pairs(dominances(verdicts[::-1], labels, {})) == pairs(before)
    assert front(LABELS, before)
    for found in before:
        outcomes = {
            one.question.name: one.outcome_for(found.one) for one in verdicts if {one.one, one.other} == {found.one, found.other}
        }
        assert {outcomes[name] for name in found.better} == {Outcome.BETTER}
        assert {outcomes[name] for name in found.as_good}.isdisjoint((Outcome.WORSE, *NOTHING_SHOWN))


def kinds(adapter: str, **asked: Any) -> list[No]:
    one = next(one for one in list_adapters() if one.plugin.name == adapter)
    return [obstacle.kind for obstacle in candidate(one, Request(**asked)).obstacles]


def test_the_built_in_adapters_answer_a_request_of_each_kind() -> None:
    assert kinds("nevergrad", platform="kubernetes") == [No.TUNEOFF]
    assert kinds("serial", platform="kubernetes", must_retry=True) == kinds("katib", platform="kubernetes") == []
    assert kinds("syne-tune", sampler="cmaes") == [No.FRAMEWORK]


def test_a_mistyped_name_is_refused_and_the_nearest_named() -> None:
    known = [listing("a", platforms=("kubernetes",))]
    with pytest.raises(UnknownNameError, match="no platform named 'kubernets'; did you mean 'kubernetes'"):
        check_request(Request(platform="kubernets"), known)
    with pytest.raises(UnknownNameError, match="no sampler named 'x'"):
        check_request(Request(sampler="x"), known)


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


def test_files_and_folders_of_faults_are_read_back(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_faults(tmp_path / f"{name}.json", fault(name, "recovered"))
    assert [one.adapter for one in read_faults([tmp_path])] == ["one", "two"]
    assert [one.file for one in read_faults([tmp_path / "two.json"])] == [str(tmp_path / "two.json")]


@pytest.mark.parametrize("text", ["", "[]", '{"runs": [{}]}', '{"runs": 3}', "\xff", '{"a": 1}'])
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    with pytest.raises(ResultsError, match="is not what `tuneoff faults --json` writes"):
        read_faults([tmp_path / "x.json"])


def test_a_folder_without_faults_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"holds no \*\.json"):
        read_faults([tmp_path])
    with pytest.raises(ResultsError, match="cannot be read"):
        read_faults([tmp_path / "missing.json"])


def test_faults_go_by_the_names_that_the_files_know(tmp_path: Path) -> None:
    runs = [fault("serial", "recovered", kind) for kind in ("none", "sigkill")]
    write_faults(tmp_path / "faults.json", *runs, faults=["none", "raise", "nan"])
    assert len(read_faults([tmp_path], ["raise", "nan", "sigkill"])) == 2
    for name in ("worker_killed", "none"):
        with pytest.raises(UnknownNameError, match=f"no fault named '{name}'.*; known: nan, raise, sigkill"):
            read_faults([tmp_path], [name])


# --- the command ---


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder in which ray-tune is faster than optuna and as good."""
    return write_results(made_results(runs_of("ray-tune"), runs_of("optuna", seconds=2.0), folder=tmp_path / "results" / "old"))


def test_recommend_takes_the_newest_folder_with_a_run_and_cites_runs(call: Call, results: Path) -> None:
    answer = call(*recommend.EXAMPLE.split()[1:])
    assert (answer.code, answer.err) == (0, "")
    out = call("recommend", results, "--runs").out
    cited = [word for line in out.splitlines() if "/runs: " in line for word in line.partition("/runs: ")[2].split()]
    assert len(cited) == 20
    assert all((results / "runs" / run).is_dir() for run in cited)
    write_results(made_results([(spec, None) for spec, _ in runs_of("optuna")], folder=Path("results/new")))
    os.utime(Path("results/new") / PLAN, ns=(2**62, 2**62))
    told = "results/new is taken, as the newest folder, but no run of it has ended; the newest with runs is results/old\n"
    for command in (("recommend",), ("report", "--text")):
        assert call(*command).err.startswith(told)


def test_recommend_reads_faults(call: Call, results: Path, tmp_path: Path) -> None:
    path = write_faults(tmp_path / "faults.json", fault("ray-tune", "run aborted"), fault("optuna", "recovered"))
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


def test_folders_without_a_run_that_is_done_are_read(call: Call, tmp_path: Path) -> None:
    empty = write_results(made_results([(spec, None) for spec, _ in runs_of("ray-tune")], folder=tmp_path / "empty"))
    answer = call("recommend", empty)
    assert answer.code == 1
    assert answer.out.startswith("unfinished: 10 of 10 runs ")
