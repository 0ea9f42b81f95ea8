"""`plan` says what the planned seeds can find, before anything is run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from builders import made_results
from builders.made_results import Entry, steady
from command_line import Call, File
from tuneoff.judge.answers import compute as all_answers
from tuneoff.judge.detectable import detectable_lines, spreads
from tuneoff.judge.results import Results
from tuneoff.judge.stats.power import detectable

pytest.importorskip("scipy")
ALPHA = 0.05 / 15


def planned(n: int, **changes: Any) -> Results:
    """Return results of two adapters with a plan of n seeds; `changes` are of the analysis."""
    pair = [{"variant": {}, "adapters": ["a", "b"]}]
    entries = [Entry("a", steady(key="a", spread=0.05)), Entry("b", steady(jct=1100, key="b", spread=0.05))]
    return made_results.results(entries, seeds=range(n), **{"comparisons": pair, **changes})


def test_the_line_has_the_seeds_the_effect_and_the_questions() -> None:
    (line,) = detectable_lines(planned(20).plan)
    effect = detectable(20, ALPHA)
    assert f"with 20 seeds a difference of {effect:.1f} standard deviations of the paired difference" in line
    assert "in 80 % of the cases (for each of time, quality; family of 15)" in line


def test_below_ten_seeds_it_says_that_no_verdict_is_made() -> None:
    (line,) = detectable_lines(planned(9).plan, {})
    assert "with 9 seeds no verdict will be made: below 10" in line


def test_a_large_family_costs_seeds() -> None:
    """At ten seeds nothing can be found: the least p is 2 / 1024, above 0.05 / 30."""
    (line,) = detectable_lines(planned(10, family_size=30).plan)
    assert "with 10 seeds nothing can be found: a verdict needs at least 11 (for each of time, quality; family of 30)" in line


def test_more_pairs_than_the_family_size_make_the_family() -> None:
    pairs = [{"variant": {}, "adapters": [f"a{k}", "b"]} for k in range(20)]
    other = [{"variant": {"task": "t"}, "adapters": ["a", "b"]}]
    assert "family of 20)" in detectable_lines(planned(20, comparisons=[*pairs, *other]).plan)[0]


def test_a_plan_that_compares_nothing_has_no_line() -> None:
    assert detectable_lines(planned(20, comparisons=[]).plan) == []


def test_measured_spreads_give_the_metrics_unit() -> None:
    earlier = planned(12)
    measured = spreads(all_answers.answers(earlier))
    (time,) = measured["time.jct"]
    assert (time.n, time.correlation is not None) == (12, True)
    lines = detectable_lines(planned(20).plan, measured, "results/earlier")
    ratio = math.exp(detectable(20, ALPHA) * time.deviation)
    shown = next(line for line in lines if line.startswith("  time (time.jct): "))
    assert float(shown.split(": ")[1].split("x")[0]) == pytest.approx(ratio, abs=0.006)
    assert "(by the spread of 1 pair in results/earlier, 12 seeds; correlation of pairs " in shown
    (quality,) = measured["quality.test"]
    line = next(line for line in lines if line.startswith("  quality (quality.test): "))
    assert float(line.split(": ")[1].split(" (")[0]) == pytest.approx(detectable(20, ALPHA) * quality.deviation, abs=1e-4)


def test_a_question_without_a_measured_pair_says_so() -> None:
    lines = detectable_lines(planned(20).plan, spreads(all_answers.answers(planned(2))), "results/earlier")
    assert "  time (time.jct): no pair of results/earlier has 3 seeds with it" in lines


def test_pairs_that_spread_differently_give_a_range_and_those_without_a_spread_nothing() -> None:
    entries = [Entry(name, steady(key=name, spread=spread)) for name, spread in (("a", 0.01), ("b", 0.02), ("c", 0.2))]
    measured = spreads(all_answers.answers(made_results.results(entries, seeds=range(10))))
    line = detectable_lines(planned(20).plan, measured, "DIR")[1]
    least, most = (float(text.split("x")[0]) for text in line.split(" (")[2].split(" to "))
    expected = sorted(math.exp(detectable(20, ALPHA) * one.deviation) for one in measured["time.jct"])
    assert least == pytest.approx(expected[0], abs=0.006)
    assert most == pytest.approx(expected[-1], abs=0.06)
    assert "by 3 pairs in DIR, 10 seeds; correlation of pairs " in line
    entries = [Entry(name, steady(key=name, spread=0.0)) for name in "ab"]
    measured = spreads(all_answers.answers(made_results.results(entries, seeds=range(10))))
    line = detectable_lines(planned(20).plan, measured, "DIR")[1]
    assert line == "  time (time.jct): not known: the differences of 1 pair in DIR, 10 seeds, have no spread"


def test_failed_seeds_are_in_no_spread() -> None:
    failing = Entry("a", steady(key="a"), status={0: "failed"})
    results = made_results.results([failing, Entry("b", steady(key="b"))], seeds=range(5))
    assert [one.n for one in spreads(all_answers.answers(results))["time.jct"]] == [4]


def test_the_command_prints_it_and_reads_earlier_results(
    call: Call, file: File, fakes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = file(adapters=["plain", "rich"], seeds=list(range(12)))
    line = next(line for line in call("plan", path).out.splitlines() if line.startswith("detectable: "))
    assert f"a difference of {detectable(12, ALPHA):.1f} standard deviations" in line
    monkeypatch.setattr("tuneoff.judge.results.read_results", lambda folder: planned(12))
    answer = call("plan", path, "--from", tmp_path / "earlier")
    assert answer.code == 0
    assert f"in {tmp_path / 'earlier'}, 12 seeds" in answer.out


def test_a_folder_that_is_no_results_folder_is_one_line(call: Call, file: File, fakes: None, tmp_path: Path) -> None:
    answer = call("plan", file(), "--from", tmp_path / "nowhere")
    assert (answer.code != 0, answer.out, len(answer.err.splitlines())) == (True, "", 1)


def test_pairs_of_zeros_have_a_spread_and_no_correlation() -> None:
    def free(seed: int) -> dict[str, float]:
        return {"time.jct": 1000.0 + seed, "quality.test": 0.9, "cost.job": 0.0 if seed < 5 else 1.0 + seed}

    questions = {"time": "time.jct", "cost": "cost.job"}
    found = spreads(all_answers.answers(made_results.results([Entry("a", free), Entry("b", free)], questions=questions)))
    (cost,) = found["cost.job"]
    assert cost.correlation is None
    assert found["time.jct"][0].correlation == pytest.approx(1)  # control
