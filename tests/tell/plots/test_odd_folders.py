"""Results that lack what a plot shows give fewer plots, and never an error or empty axes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.made_curves import Made, made_results
from tell.plots.drawn import draw, drawn, view_of
from tuneoff.errors import MissingPackageError
from tuneoff.judge.answers.compute import answers
from tuneoff.record.run_record import ContinuesRecord
from tuneoff.tell.plots import drawings as plots
from tuneoff.tell.plots.view import View

BOTH = ("serial", "optuna")


def test_a_single_run_is_drawn_and_paired_with_none() -> None:
    found = drawn(Made(adapters=("serial",), seeds=(0,)))
    assert "paired" not in found
    assert {"anytime", "phases", "gantt", "learning"} <= set(found)


def test_failed_runs_alone_leave_the_pairs() -> None:
    found = drawn(Made(failed=[(label, seed) for label in BOTH for seed in (0, 1)]))
    assert set(found) <= {"paired"}


def test_emulated_runs_alone_are_in_no_pair() -> None:
    assert draw("paired", Made(emulated=BOTH)) is None


def test_runs_without_a_trial_have_no_curves() -> None:
    found = drawn(Made(trials=0))
    assert not {"anytime", "ecdf", "gantt", "learning", "quality_price"} & set(found)


def test_a_plan_that_never_started_has_nothing_to_draw() -> None:
    found = drawn(Made(missing=[(label, seed) for label in BOTH for seed in (0, 1)]))
    assert not found


def test_trials_of_one_epoch_have_no_learning_curve() -> None:
    assert draw("learning", Made(epochs=1)) is None
    assert draw("learning", Made(epochs=2)) is not None


def test_a_loss_is_better_when_it_is_lower() -> None:
    view = view_of(Made(mode="min", seeds=(0, 1, 2)))
    anytime, price = draw("anytime", view), draw("quality_price", view)
    assert anytime is not None
    assert price is not None
    medians = [row[5] for row in anytime.rows if row[1] == "serial" and row[2] == "trials" and row[3] is None]
    assert medians == sorted(medians, key=lambda value: -float(value or 0))
    assert "lower is better" in price.svg


def test_a_continued_run_has_no_seconds_and_no_slots() -> None:
    results = made_results(Made(adapters=("serial",), seeds=(0,)))
    record = results.records[0]
    pause = ContinuesRecord(executions=("e",), digest="d", finished=(), begun_again=(), away_ns=1)
    metrics = {name: value for name, value in record.metrics.items() if not name.startswith(("time.", "overhead."))}
    record = replace(record, continues=pause, metrics=metrics)
    results = replace(results, records=(record,), standing={record.run_id: record})
    found = {drawing.name: drawing for drawing in plots.drawings(results, answers(results))}
    assert {row[2] for row in found["anytime"].rows} == {"trials"}
    assert not {"gantt", "phases", "overhead"} & set(found)
    assert "learning" in found


def test_thirty_seeds_have_a_band_and_three_have_thin_lines() -> None:
    many = draw("anytime", Made(adapters=("serial",), seeds=range(30), trials=3))
    few = draw("anytime", Made(adapters=("serial",), seeds=range(3), trials=3))
    assert many is not None
    assert few is not None
    assert all(row[3] is None and row[6] is not None for row in many.rows)
    assert {row[3] for row in few.rows} == {None, 0, 1, 2}


def test_names_that_are_shortened_to_the_same_text_stay_whole() -> None:
    long = [f"an-adapter-with-{middle * 10}-and-the-same-end-of-it" for middle in "ab"]
    texts = [style.label for style in view_of(Made(adapters=long, seeds=(0,), trials=1)).styles.values()]
    assert texts == long
    alone = view_of(Made(adapters=long[:1], seeds=(0,), trials=1)).styles[long[0]].label
    assert len(alone) < len(long[0])
    assert "…" in alone


def test_without_matplotlib_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    results = made_results(Made())
    monkeypatch.setattr(plots, "missing_modules", lambda names: list(names))
    with pytest.raises(MissingPackageError, match=r"pip install 'tuneoff\[report\]'"):
        next(plots.drawings(results, answers(results)))


def test_a_run_is_chosen_whose_time_is_in_the_middle() -> None:
    view: View = view_of(Made(adapters=("serial",), seeds=range(5)))
    (group, run, why), *rest = view.representative()
    assert not rest
    times = sorted(run.value("time.jct_without_test") or 0 for run in view.runs(group))
    assert run.value("time.jct_without_test") == times[2]
    assert why.startswith(f"seed {run.ref.seed} of")


def test_results_without_a_folder_are_no_fault_matrix() -> None:
    assert draw("faults", Made(adapters=("serial",), seeds=(0,), trials=1)) is None
    assert not Path("nowhere").exists()
