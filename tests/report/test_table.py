from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from event_logs import example_a
from tuneoff.experiment.spec import RunSpec, Strategy
from tuneoff.metrics.all import with_metrics
from tuneoff.metrics.values import known
from tuneoff.records.derive import derive
from tuneoff.records.model import RunRecord
from tuneoff.report.summary import summary_rows
from tuneoff.report.table import render

Make = Callable[..., RunRecord]


@dataclass(frozen=True)
class Plan:
    run_id: str
    spec: RunSpec
    label: str
    skip_reason: str | None = None


@pytest.fixture(scope="module")
def make() -> Make:
    log, base = example_a()

    def make(adapter: str, seed: int, jct: float = 176_000, *, sampler: str = "random", **changes: Any) -> RunRecord:
        experiment = replace(base.experiment, sampler=Strategy(name=sampler))
        spec = replace(base, adapter=adapter, seed=seed, experiment=experiment)
        run = with_metrics(replace(derive(log.pairs(), spec), execution_id=f"{spec.run_id}-1"))
        return replace(run, **{"metrics": {**run.metrics, "time.jct": known(jct, "ms")}, **changes})

    return make


def plan(*records: RunRecord) -> list[Plan]:
    return [Plan(record.run_id, record.run_spec(), record.run_spec().adapter) for record in records]


def test_a_row_has_the_median_and_the_range_over_the_seeds(make: Make) -> None:
    (row,) = summary_rows([make("serial", 0, 1000), make("serial", 1, 3000), make("serial", 2, 9000)])
    assert row.jct is not None
    assert (row.jct.median, row.jct.low, row.jct.high, row.jct.n) == (3000, 1000, 9000, 3)
    assert (row.trials_completed, row.trials_failed, row.trials_pruned) == (6, 0, 3)
    assert (row.runs_done, row.runs_planned, row.metric) == (3, 3, "validation_accuracy")


def test_adapters_and_samplers_have_their_own_rows_in_the_order_of_the_plan(make: Make) -> None:
    records = [make("b", 0), make("a", 0), make("a", 0, sampler="tpe"), make("a", 1)]
    rows = summary_rows(records, plan(*records))
    assert [(row.label, row.sampler, row.runs_planned) for row in rows] == [
        ("b", "random", 1),
        ("a", "random", 2),
        ("a", "tpe", 1),
    ]


def test_the_order_of_the_records_changes_no_row(make: Make) -> None:
    records = [make(adapter, seed, 100 * seed) for adapter in "ab" for seed in range(4)]
    shuffled = records.copy()
    random.Random(0).shuffle(shuffled)
    assert summary_rows(records) == summary_rows(shuffled)


def test_the_plan_is_the_denominator(make: Make) -> None:
    done, failed, missing = make("a", 0), make("a", 1, 5, status="failed", reason="boom"), make("a", 2)
    (row,) = summary_rows([done, failed], plan(done, failed, missing))
    assert (row.runs_done, row.runs_planned, dict(row.statuses)) == (1, 3, {"done": 1, "failed": 1})
    assert row.jct is not None
    assert row.jct.n == 1  # a failed run is in no median
    text = render([row])
    assert "1/3" in text
    assert "a random: failed: boom" in text


def test_a_skipped_cell_is_a_row_with_its_reason(make: Make) -> None:
    record = make("a", 0)
    skipped = replace(plan(make("katib", 0))[0], skip_reason="the kubernetes package is missing")
    rows = summary_rows([record], [*plan(record), skipped])
    text = render(rows)
    assert rows[1].test is None
    assert "skipped" in text
    assert "katib random: skipped: the kubernetes package is missing" in text


def test_of_several_executions_the_one_that_is_done_counts(make: Make) -> None:
    done = make("a", 0, 1000)
    later = replace(done, execution_id="z", started_at="2999-01-01", status="failed", reason="x")
    (row,) = summary_rows([later, done])
    assert (row.runs_done, row.runs_planned) == (1, 1)


def test_warm_up_runs_are_in_no_row(make: Make) -> None:
    record = make("a", 0)
    specification = {**record.specification, "warm_up": True}
    assert summary_rows([replace(record, specification=specification)]) == []


@pytest.mark.parametrize("width", [100, 120, 40])
def test_the_table_is_plain_text_of_at_most_100_columns(make: Make, width: int) -> None:
    adapters = ("serial", "optuna", "ray-tune", "syne-tune")
    records = [make(name, seed, 123_456 * (seed + 1), sampler="model-based") for name in adapters for seed in range(3)]
    text = render(summary_rows(records), width=width)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "\x1b" not in text
    assert "…" not in text
    for name in (*adapters, "model-based", "0.9300", "0.9500", "123–370", "10.0+2.00", "+150+2.00", "+6.00+1.00+5.00", "3/3"):
        assert name in text


def test_long_names_and_numbers_are_folded_or_widen_the_table_but_are_never_cut(make: Make) -> None:
    record = make("a-very-long-adapter-name", 0, 1e12)
    text = render(summary_rows([record, make("a-very-long-adapter-name", 1, 1e9)]))
    assert "…" not in text
    assert "1000000–1000000000" in text


def test_markup_in_a_name_is_text(make: Make) -> None:
    assert "[red]x" in render(summary_rows([make("[red]x", 0, status="failed", reason="[bold]why[/bold]")]))


def test_a_part_below_the_uncertainty_of_the_clocks_is_told_as_below_it(make: Make) -> None:
    text = render(summary_rows([make("a", 0, clock_uncertainty_ns=3_000_000_000)]))
    assert "<3.00" in text
    assert "agree within 3000 ms" in text
