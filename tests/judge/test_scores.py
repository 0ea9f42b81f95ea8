"""One score over tasks by their weights, and the price of a result beside it."""

from __future__ import annotations

from typing import Any

from builders.made_results import Draw, Entry, results, steady
from corpus.scenarios import tasks_of
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose

TIMES = {"a": (1000.0, 1000.0, 1000.0), "b": (2000.0, 500.0, 1000.0)}


def draw(label: str, task: int) -> Draw:
    usd = 0.001 if label == "a" else 0.001 * (1 + task)
    return lambda seed: {"time.jct": TIMES[label][task] * (1 + seed / 100), "cost.job_without_test": usd}


def told(baseline: str, **more: Any) -> list[str]:
    lines = choose(answers(tasks_of(draw, count=3, seeds=3, **more)), baseline=baseline).lines
    return [line for line in lines if line.startswith(("Score", "Price"))]


def test_the_score_is_the_weighted_geometric_mean_of_the_speed_over_the_baseline() -> None:
    """Of b against a, 2 in t0 at 1/2, 1 in t1 at 2, 1 in t2 at 1: 2 ** (-1 / 4)."""
    score, price = told("a", weights={"t0": 2.0, "t1": 1.0})
    assert "weights t0 2 and t1 1, others 1" in score
    assert score.endswith((": a 1.00, b 0.84.", ": b 0.84, a 1.00."))
    assert {"a 1.00", "b 1.75"} == set(price.removesuffix(".").partition("): ")[2].split(", "))  # (2 * 1 + 2 + 3) / 4 mUSD
    assert "a 0.84" in told("b", weights={"t1": 2.0})[0]  # the other way round: 2 ** (-1 / 4) too


def test_who_has_not_all_tasks_has_neither_a_score_nor_a_price() -> None:
    lacking = {"of": lambda label, task: {"skipped": "refused"} if (label, task) == ("b", 1) else {}}
    for baseline in "ab":
        score, price = told(baseline, weights={"t1": 5.0}, **lacking)
        assert "b –" in score
        assert "b –" in price
        assert "a –" not in price


def test_nothing_is_scored_without_weights() -> None:
    assert told("a") == []


def test_what_would_decide_is_asked_against_the_same_baseline() -> None:
    entries = [Entry(label, steady(key=label, spread=0.05)) for label in "ab"]
    measured = answers(results(entries, seeds=range(2)))
    asked, plain = (choose(measured, baseline=baseline).deciding for baseline in ("b", None))
    assert asked is not None
    assert plain is not None
    assert asked.command == f"{plain.command} --baseline b"
