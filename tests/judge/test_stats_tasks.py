"""Claims across tasks, and shares: worked examples, weights of tasks, failures, properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.judge.stats.location import wilson
from tuneoff.judge.stats.sign_flip import generator
from tuneoff.judge.stats.tasks import stratified_iqm

stats = pytest.importorskip("scipy.stats")


def scores(*key: str, tasks: int = 4, seeds: int = 3, shift: float = 0.0) -> dict[str, list[float]]:
    draw = generator("scores", *key)
    return {f"task {task}": [float(value) + task + shift for value in draw.standard_normal(seeds)] for task in range(tasks)}


def test_the_iqm_over_tasks_is_the_trimmed_mean_of_all_runs() -> None:
    values = scores("iqm")
    expected = stats.trim_mean([value for task in values.values() for value in task], 0.25)
    assert stratified_iqm(values, 0.95, key=()).estimate == pytest.approx(expected)


def test_every_task_weighs_the_same_however_many_seeds_it_has() -> None:
    values = scores("weights", tasks=4, seeds=4)
    repeated = values | {"task 3": values["task 3"] * 5}
    assert stratified_iqm(repeated, 0.95, key=()).estimate == pytest.approx(stratified_iqm(values, 0.95, key=()).estimate)


def test_the_order_of_the_tasks_changes_nothing_and_a_further_task_no_draw_of_another() -> None:
    values = scores("order")
    turned = dict(reversed(values.items()))
    assert stratified_iqm(turned, 0.95, key=("a",)) == stratified_iqm(values, 0.95, key=("a",))


def test_one_seed_per_task_gives_no_interval() -> None:
    found = stratified_iqm({"a": [1.0], "b": [2.0, 3.0]}, 0.95, key=())
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_failures_make_the_iqm_infinite_only_where_they_reach_the_middle() -> None:
    values = scores("failing", tasks=4, seeds=4)
    assert math.isfinite(stratified_iqm(values | {"task 3": [math.inf] * 4}, 0.95, key=()).estimate)
    most = values | {"task 3": [math.inf] * 4, "task 2": [math.inf] * 4}
    assert stratified_iqm(most, 0.95, key=()).estimate == math.inf


def test_a_task_without_scores_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="task 'a'"):
        stratified_iqm({"a": []}, 0.95, key=())


def test_wilsons_interval_of_known_cases() -> None:
    """R. G. Newcombe, Statist. Med. 17 (1998) 857, Table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    for successes, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = wilson(successes, n, 0.95)
        assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)
    assert wilson(7, 7, 0.95).high == 1.0


@given(n=st.integers(1, 50), data=st.data())
def test_wilson_mirrors_and_stays_between_0_and_1(n: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, n))
    found, mirrored = wilson(successes, n, 0.95), wilson(n - successes, n, 0.95)
    assert 0 <= found.low <= found.estimate <= found.high <= 1
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((found.low, found.high))


def test_wilson_refuses_more_successes_than_runs() -> None:
    with pytest.raises(ValueError, match="successes=3"):
        wilson(3, 2, 0.95)
