"""`plan` says what the planned seeds can find, before anything is run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from builders import made_results
from builders.made_results import Entry, steady
from command_line import Call, File
from corpus.scenarios import SCENARIOS
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


PAIRS = [{"variant": {}, "adapters": [f"a{number}", "b"]} for number in range(20)]


@pytest.mark.parametrize(
    ("seeds", "changes", "earlier"),
    [
        (9, {}, None),
        (10, {"family_size": 30}, None),
        (20, {"comparisons": [*PAIRS, {"variant": {"task": "t"}, "adapters": ["a", "b"]}]}, None),
        (20, {"comparisons": []}, None),
        (20, {}, "a single seed"),
        (20, {}, "several that are not decided"),
        (20, {}, "no margin"),
    ],
)
def test_what_can_be_found_is_told(seeds: int, changes: dict[str, Any], earlier: str | None, snapshot: SnapshotAssertion) -> None:
    """Two seeds have no spread, three pairs spread differently, and pairs of one draw have no spread."""
    measured = spreads(all_answers.answers(SCENARIOS[earlier]())) if earlier else None
    assert detectable_lines(planned(seeds, **changes).plan, measured, "DIR" if earlier else "") == snapshot


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


def test_pairs_of_zeros_have_a_spread_and_no_correlation() -> None:
    def free(seed: int) -> dict[str, float]:
        return {"time.jct": 1000.0 + seed, "quality.test": 0.9, "cost.job": 0.0 if seed < 5 else 1.0 + seed}

    questions = {"time": "time.jct", "cost": "cost.job"}
    found = spreads(all_answers.answers(made_results.results([Entry("a", free), Entry("b", free)], questions=questions)))
    (cost,) = found["cost.job"]
    assert cost.correlation is None
    assert found["time.jct"][0].correlation == pytest.approx(1)  # control
