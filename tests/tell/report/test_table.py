from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders.event_logs import example_a
from builders.made_runs import planned, results_of
from tuneoff.base.format import folded, score
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import Strategy
from tuneoff.judge.summary_rows import summary_rows
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.metric_value import known
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.tell.report.tables import render

Make = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def make() -> Make:
    log, base = example_a()

    def make(adapter: str, seed: int, jct: float = 176_000, *, sampler: str = "random", **changes: Any) -> RunRecord:
        experiment = replace(base.experiment, sampler=Strategy(name=sampler))
        spec = replace(base, adapter=adapter, seed=seed, experiment=experiment)
        run = with_metrics(replace(derive(log.pairs(), spec), execution_id=f"{spec.run_id}-1"))
        times = {"time.jct_without_test": known(jct, "ms"), "time.jct": known(jct + 6000, "ms")}
        return replace(run, **{"metrics": {**run.metrics, **times}, **changes})

    return make


def plan(*records: RunRecord) -> list[PlannedRun]:
    return planned(records)


def test_a_row_has_the_median_and_the_range_over_the_seeds(make: Make) -> None:
    (row,) = summary_rows(results_of([make("serial", 0, 1000), make("serial", 1, 3000), make("serial", 2, 9000)]))
    without_test, jct = (row.figures[name] for name in ("time.jct_without_test", "time.jct"))
    assert (without_test.median, without_test.numbers) == (3000, [1000, 3000, 9000])
    assert (jct.median, len(jct.known)) == (9000, 3)
    assert (row.trials_completed, row.trials_failed, row.trials_pruned) == (6, 0, 3)
    assert (row.runs_done, row.runs_planned) == (3, 3)


def test_adapters_and_samplers_have_their_own_rows_in_the_order_of_the_plan(make: Make) -> None:
    records = [make("b", 0), make("a", 0), make("a", 0, sampler="tpe"), make("a", 1)]
    rows = summary_rows(results_of(records, plan(*records)))
    assert [(row.label, row.sampler, row.runs_planned) for row in rows] == [
        ("b", "random", 1),
        ("a", "random", 2),
        ("a", "tpe", 1),
    ]


def test_the_order_of_the_records_changes_no_row(make: Make) -> None:
    records = [make(adapter, seed, 100 * seed) for adapter in "ab" for seed in range(4)]
    shuffled = records.copy()
    random.Random(0).shuffle(shuffled)
    assert summary_rows(results_of(records)) == summary_rows(results_of(shuffled))


def test_the_plan_is_the_denominator(make: Make) -> None:
    done, failed, missing = make("a", 0), make("a", 1, 5, status="failed", reason="boom"), make("a", 2)
    (row,) = summary_rows(results_of([done, failed], plan(done, failed, missing)))
    assert (row.runs_done, row.runs_planned, dict(row.statuses)) == (1, 3, {"done": 1, "failed": 1})
    time = row.figures["time.jct_without_test"]
    assert (len(time.known), time.failed) == (1, 1)
    text = render([row])
    assert "1/3" in text
    assert "a random seed 1: failed: boom" in text


def test_a_skipped_cell_is_a_row_with_its_reason(make: Make) -> None:
    record = make("a", 0)
    skipped = replace(plan(make("katib", 0))[0], skip_reason="the kubernetes package is missing")
    rows = summary_rows(results_of([record], [*plan(record), skipped]))
    text = render(rows)
    assert rows[1].figures["quality.test"].median is None
    assert "skipped" in text
    assert "katib random seed 0: skipped: the kubernetes package is missing" in text


def test_warm_up_runs_are_in_no_row(make: Make) -> None:
    record = make("a", 0)
    specification = {**record.specification, "warm_up": True}
    assert summary_rows(results_of([replace(record, specification=specification)])) == []


ADAPTERS = ("serial", "optuna", "ray-tune", "syne-tune")


@pytest.mark.parametrize("width", [None, 200, 120, 100, 80])
def test_the_table_is_plain_text_that_fits_the_terminal(make: Make, width: int | None) -> None:
    records = [make(name, seed, 12_345 * (seed + 1)) for name in ADAPTERS for seed in range(3)]
    text = render(summary_rows(results_of(records)), width=width)
    assert width is None or max(len(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert "…" not in text
    for name in (*ADAPTERS, "random", "0.9300", "24.7", "12.3–37.0", "6/0/3", "3/3"):
        assert name in text


def test_as_many_columns_are_shown_as_fit_the_most_important_first(make: Make) -> None:
    rows = summary_rows(results_of([make(name, seed, 123_456 * (seed + 1)) for name in ADAPTERS for seed in range(3)]))
    narrow, wide, widest = (" ".join(render(rows, width=width).partition("───")[0].split()) for width in (80, 120, None))
    for name in ("test", "JCT", "overhead", "job/", "runs"):
        assert name in narrow
    assert "collect" not in narrow
    assert len(narrow) < len(wide) < len(widest)
    assert all(name in widest for name in ("deploy", "setup", "collect", "un-deploy", "WTT", "core-s"))


def test_what_all_runs_share_has_no_range(make: Make) -> None:
    text = render(summary_rows(results_of([make("a", 0, 1000), make("a", 1, 3000)])))
    assert "1.00–3.00" in text
    assert "0.9300–" not in text


def test_long_numbers_widen_the_table_but_are_never_cut(make: Make) -> None:
    text = render(summary_rows(results_of([make("a", 0, 1e12), make("a", 1, 1e9)])))
    assert "…" not in text
    assert "1000000–1000000000" in text


def test_names_are_broken_between_words_only(make: Make) -> None:
    assert folded("a_very_long_adapter.name:Class") == "a_very_long_\nadapter.name:\nClass"
    assert folded("AnAdapterWithALongName") == "AnAdapterWithALongName"
    assert folded('optuna{"storage":"x","y":1}') == 'optuna{"storage":\n"x","y":1}'
    assert "AnAdapterWithALongName" in render(summary_rows(results_of([make("module.below:AnAdapterWithALongName", 0)])))
    assert "module" not in render(summary_rows(results_of([make("module.below:AnAdapterWithALongName", 0)])))


def test_variants_have_a_column_where_there_are_any(make: Make) -> None:
    log, base = example_a()
    experiment = replace(base.experiment, variant={"workload.name": "null", "sampler": "random"})
    record = with_metrics(replace(derive(log.pairs(), replace(base, experiment=experiment)), execution_id="1"))
    text = render(summary_rows(results_of([replace(record, status="failed", reason="boom")])))
    assert "variant" in text
    assert "workload=null" in text
    assert f"{base.adapter} random workload=null seed 0: failed: boom" in text
    assert "variant" not in render(summary_rows(results_of([make("a", 0)])))


def test_a_sampler_that_is_another_one_refers_to_it(make: Make) -> None:
    records = [make(name, seed) for name in ("a", "b") for seed in (0, 1)]
    planned = plan(*records)
    for run in plan(*(make(name, seed, sampler="default") for name in ("a", "b") for seed in (0, 1))):
        twin = next(other for other in planned if (other.label, other.spec.seed) == (run.label, run.spec.seed))
        planned.append(replace(run, skip_reason="same as sampler 'random'", same_as=twin.run_id))
    text = render(summary_rows(results_of(records, planned)))
    assert [line.split() for line in text.splitlines() if "default" in line and "policy" not in line] == [
        ["a", "default", "=", "random"],
        ["b", "default", "=", "random"],
        ["default", "is", "random", "for", "a", "and", "b:", "4", "runs", "not", "repeated"],
    ]
    assert "skip" not in text


def test_flags_are_told_with_the_runs_that_have_them(make: Make) -> None:
    busy, model = FlagRecord(name="disturbed", text="x"), FlagRecord(name="sampler_without_model", text="y")
    records = [
        make("a", 0, flags=(busy,)),
        make("a", 1),
        make("b", 0, flags=(busy, busy)),
        make("b", 0, sampler="tpe", flags=(busy, model)),
    ]
    lines = render(summary_rows(results_of(records))).splitlines()
    assert "  disturbed: 3 of 4 runs: a 1, b 2" in lines
    assert "  ! sampler_without_model: 1 of 4 runs: b tpe 1" in lines
    assert lines[lines.index("  disturbed: 3 of 4 runs: a 1, b 2") + 1].endswith("tuneoff explain sampler_without_model")
    assert "Flags" not in render(summary_rows(results_of([make("a", 0)])))


def test_lines_below_the_table_gather_the_seeds_of_a_reason(make: Make) -> None:
    records = [make("a", seed, status="failed", reason="boom") for seed in (2, 0)]
    lines = render(summary_rows(results_of([*records, make("a", 1, status="interrupted", reason="interrupted")]))).splitlines()
    assert "a random seeds 0, 2: failed: boom" in lines
    assert "a random seed 1: interrupted" in lines


def test_markup_in_a_name_is_text(make: Make) -> None:
    assert "[red]x" in render(summary_rows(results_of([make("[red]x", 0, status="failed", reason="[bold]why[/bold]")])))


def test_a_part_below_the_uncertainty_of_the_clocks_is_told_as_below_it(make: Make) -> None:
    text = render(summary_rows(results_of([make("a", 0, clock_uncertainty_ns=3_000_000_000)])))
    assert "<3.00" in text
    assert "agree within 3000 ms" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.98765, "0.9877"),
        (0.0352, "0.0352"),
        (0.00113, "0.00113"),
        (2.3548e-05, "2.35e-05"),
        (0.0, "0.0000"),
        (1234.5, "1234.5"),
    ],
)
def test_a_score_keeps_four_decimals_or_three_digits(value: float, text: str) -> None:
    assert score(value) == text
    assert score(-value) == f"-{text}"
