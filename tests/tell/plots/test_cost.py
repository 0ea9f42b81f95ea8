"""What all plots of a large folder cost: seconds of one processor, and characters of the page."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.speed.synthetic_results import write_results
from tuneoff.experiment.plan import Plan
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.results import read_results
from tuneoff.tell.plots.drawings import drawings

RUNS, TRIALS = 20, 5000
MOST_SECONDS, MOST_CHARACTERS = 12.0, 2_500_000  # twice what it takes on a busy machine


@pytest.mark.slow
def test_a_hundred_thousand_trials_are_drawn_in_seconds_and_few_characters(tmp_path: Path) -> None:
    write_results(tmp_path / "results", RUNS, TRIALS, epochs=2)
    results = read_results(tmp_path / "results")
    # two adapters of ten seeds each, for pairs: the folder has one
    half = RUNS // 2
    planned = []
    for place, run in enumerate(results.planned):
        spec = replace(run.spec, adapter="serial" if place < half else "optuna", seed=run.spec.seed % half)
        planned.append(replace(run, spec=spec, label=spec.adapter))
    records = {old.run_id: results.standing[old.run_id] for old in results.planned}
    plan = Plan(name="large", path="large.yaml", runs=tuple(planned), analysis=results.plan.analysis)
    results = replace(results, plan=plan, planned=tuple(planned), standing=records)
    found = answers(results)
    before = time.process_time()
    drawn = list(drawings(results, found))
    seconds = time.process_time() - before
    assert {"anytime", "phases", "gantt", "overhead", "paired", "ecdf", "learning"} <= {drawing.name for drawing in drawn}
    assert sum(len(drawing.svg) for drawing in drawn) <= MOST_CHARACTERS
    assert seconds <= MOST_SECONDS
    thinned = {drawing.name for drawing in drawn if "thinned" in drawing.note or " are drawn" in drawing.note}
    assert {"gantt", "learning"} <= thinned
