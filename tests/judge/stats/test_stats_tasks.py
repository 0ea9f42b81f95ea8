"""Claims across tasks, and shares: worked examples, weights of tasks, failures, properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuneoff.judge.stats.location import wilson
from tuneoff.judge.stats.sign_flip import generator
from tuneoff.judge.stats.tasks import probability_of_improvement, stratified_iqm

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
    other = scores("others", tasks=4, seeds=4)
    found, expected = (probability_of_improvement(one, other, 0.95, key=()).estimate for one in (repeated, values))
    assert found == pytest.approx(expected)


def test_the_order_of_the_tasks_changes_nothing_and_a_further_task_no_draw_of_another() -> None:
    values = scores("order")
    turned = dict(reversed(values.items()))
    assert stratified_iqm(turned, 0.95, key=("a",)) == stratified_iqm(values, 0.95, key=("a",))
    other = scores("order of others")
    assert probability_of_improvement(turned, other, 0.9, key=()) == probability_of_improvement(values, other, 0.9, key=())


def test_one_seed_per_task_gives_no_interval() -> None:
    found = stratified_iqm({"a": [1.0], "b": [2.0, 3.0]}, 0.95, key=())
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_failures_make_the_iqm_infinite_only_where_they_reach_the_middle() -> None:
    values = scores("failing", tasks=4, seeds=4)
    assert math.isfinite(stratified_iqm(values | {"task 3": [math.inf] * 4}, 0.95, key=()).estimate)
    most = values | {"task 3": [math.inf] * 4, "task 2": [math.inf] * 4}
    assert stratified_iqm(most, 0.95, key=()).estimate == math.inf


def test_the_probability_of_improvement_is_that_of_mann_and_whitney() -> None:
    one, other = scores("one", tasks=1, seeds=8), scores("other", tasks=1, seeds=9)
    u = stats.mannwhitneyu(other["task 0"], one["task 0"]).statistic
    assert probability_of_improvement(one, other, 0.95, key=()).estimate == pytest.approx(u / 72)


@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_the_two_probabilities_of_a_pair_add_up_to_one(seed: int) -> None:
    one, other = scores("a", str(seed)), scores("b", str(seed))
    forth, back = (probability_of_improvement(*pair, 0.95, key=()).estimate for pair in ((one, other), (other, one)))
    assert forth + back == pytest.approx(1)


def test_ties_count_half_and_failures_are_worse_than_any() -> None:
    same = {"a": [1.0, math.inf]}
    assert probability_of_improvement(same, same, 0.95, key=()).estimate == 0.5
    assert probability_of_improvement({"a": [9.0, 9.0]}, {"a": [math.inf, math.inf]}, 0.95, key=()).estimate == 1.0


def test_different_tasks_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'b'"):
        probability_of_improvement({"a": [1.0]}, {"a": [1.0], "b": [1.0]}, 0.95, key=())
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
