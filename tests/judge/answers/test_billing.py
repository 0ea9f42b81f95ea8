"""Cost is billed in whole units of time: what a unit may hide is not called equal, and not known better than that."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from builders.made_results import Draw, Entry, Metrics, results
from builders.present import present
from tuneoff.experiment.accounting.declared import Accounting, Prices
from tuneoff.judge.answers.answer import Answers, Outcome, Verdict
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.run_values import log_billing_step
from tuneoff.judge.runs import grouped
from tuneoff.record.metric_value import known
from tuneoff.record.run_record import RunRecord

pytest.importorskip("scipy")
USD_PER_HOUR = 0.36


def prices(granularity: float = 1.0, minimum: float = 0.0) -> Prices:
    return Prices(
        name="made",
        source="made",
        date="2026",
        usd_per_vcpu_hour=USD_PER_HOUR,
        usd_per_gb_hour=0.0,
        billing_granularity_seconds=granularity,
        billing_minimum_seconds=minimum,
    )


def billed(seconds: float, charged: Prices) -> Draw:
    """Return runs of about so many seconds at what they are billed for."""

    def draw(seed: int) -> Metrics:
        used = seconds * (1 + 0.01 * random.Random(f"{seconds} {seed}").random())
        unit, least = charged.billing_granularity_seconds, charged.billing_minimum_seconds
        paid = max(used, least)
        paid = math.ceil(paid / unit) * unit if unit else paid
        return {"time.jct": 1000 * used, "cost.job": paid * USD_PER_HOUR / 3600}

    return draw


def compared(one: float, other: float, charged: Prices) -> tuple[Answers, Verdict]:
    entries = [
        Entry("a", billed(one, charged)),
        Entry("a", billed(one, charged), replicate=1),
        Entry("b", billed(other, charged)),
    ]
    asked: dict[str, Any] = {"primary_metric": "cost.job", "questions": {"cost": "cost.job"}}
    found = answers(results(entries, accounting=Accounting(prices=charged), **asked))
    (verdict,) = [verdict for verdict in found.verdicts if not verdict.is_noise]
    return found, verdict


def test_runs_of_one_billed_second_are_not_equivalent_whatever_they_took() -> None:
    """0.5 s and 0.72 s cost the same second: 43 % more time, and no difference in the cost."""
    _, found = compared(0.5, 0.715, prices())
    interval = present(found.interval)
    assert interval.estimate == 0
    assert found.outcome is Outcome.UNDECIDED
    assert interval.high == -interval.low == pytest.approx(math.log(2))  # half a second less of one second
    assert present(found.noise_floor).high == pytest.approx(math.log(2))


def test_long_runs_are_equivalent_where_a_second_does_not_matter() -> None:
    _, found = compared(100.0, 100.5, prices())
    assert found.outcome in (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)


def test_what_costs_a_minimum_is_known_no_better_than_that() -> None:
    _, found = compared(20.0, 50.0, prices(minimum=60.0))
    assert found.outcome is Outcome.UNDECIDED
    _, beyond = compared(80.0, 80.2, prices(minimum=60.0))
    assert beyond.outcome is not Outcome.UNDECIDED


def test_time_that_is_billed_to_the_nanosecond_has_no_step() -> None:
    _, found = compared(0.5, 0.5001, prices(granularity=0.0))
    interval = present(found.interval)
    assert interval.high - interval.low < 0.05
    assert found.outcome is not Outcome.UNDECIDED


def test_a_cost_has_half_a_billing_step_on_its_own_bounds() -> None:
    found, _ = compared(0.5, 0.7, prices())
    median = present(found.groups[0].estimates["cost.job"].median)
    step = USD_PER_HOUR / 3600
    assert (median.low, median.high) == pytest.approx((step / 2, 3 * step / 2))


def test_a_run_that_has_no_cost_to_compare_makes_the_step_of_the_others_no_greater() -> None:
    """A run that failed after half a second is a failure, and no cost of one second."""
    charged = prices()
    entries = [Entry("a", billed(100.0, charged)), Entry("b", billed(110.0, charged))]
    cells = grouped(results(entries, accounting=Accounting(prices=charged)))
    record = present(cells[0].runs[3].record)
    metrics = {**record.metrics, "time.jct": known(500.0, "ms")}

    def step(changed: RunRecord) -> float:
        runs = (*cells[0].runs[:3], replace(cells[0].runs[3], record=changed), *cells[0].runs[4:])
        return log_billing_step([replace(cells[0], runs=runs), cells[1]], "cost.job", charged)

    usual = -2 * math.log1p(-1 / 101 / 2)
    assert step(record) == pytest.approx(usual)
    assert step(replace(record, status="failed", reason="planted", metrics=metrics)) == pytest.approx(usual)
    assert step(replace(record, metrics={"time.jct": metrics["time.jct"]})) == pytest.approx(usual)
    assert step(replace(record, metrics=metrics)) == pytest.approx(2 * math.log(2))  # control: a cost of one second


def test_a_cost_without_the_test_has_the_step_of_the_time_without_it() -> None:
    """A job of 100 s, of which 90 are the test, is billed for 100 seconds with it and for 10 without."""
    charged = prices()

    def draw(seed: int) -> dict[str, float]:
        paid = USD_PER_HOUR / 3600
        own = {"time.jct_without_test": 10_000.0, "cost.job_without_test": 10 * paid}
        return {"time.jct": 100_000.0, "cost.job": 100 * paid, **own}

    cells = grouped(results([Entry("a", draw)], accounting=Accounting(prices=charged)))
    steps = {name: log_billing_step(cells, name, charged) for name in ("cost.job", "cost.job_without_test", "time.jct")}
    expected = {"cost.job": -2 * math.log1p(-1 / 200), "cost.job_without_test": -2 * math.log1p(-1 / 20), "time.jct": 0.0}
    assert steps == pytest.approx(expected)
