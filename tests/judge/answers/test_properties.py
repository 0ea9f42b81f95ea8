"""What must hold whatever the data are: no win without a difference, and none that depends on who else was compared."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.made_results import Draw, Entry, Metrics, results, steady
from tuneoff.judge.answers.answer import Answers, Outcome, Verdict
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.stats.paired import judge, judge_without_each

pytest.importorskip("scipy")
FOUR = ("a", "b", "c", "d")
MEANS = st.fixed_dictionaries({name: st.sampled_from([1000.0, 1010.0, 1200.0]) for name in FOUR})
WINS = (Outcome.BETTER, Outcome.WORSE)


def entry(name: str, mean: float, spread: float = 0.05, fails: bool = False) -> Entry:
    return Entry(name, steady(mean, spread=spread, key=name), status={3: "failed"} if fails else {})


def among(made: Answers, names: tuple[str, ...]) -> list[Verdict]:
    """Return the verdicts between these adapters."""
    return [verdict for verdict in made.verdicts if verdict.one in names and verdict.other in names]


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(means=MEANS, fails=st.booleans())
def test_a_fifth_and_a_sixth_adapter_change_no_verdict_between_the_other_four(means: Mapping[str, float], fails: bool) -> None:
    four = [entry(name, mean, fails=fails and name == "a") for name, mean in means.items()]
    more = [entry("fifth", 10.0), entry("sixth", 5000.0, fails=True)]
    alone = answers(results(four))
    for together in ([*four, *more], [four[0], more[0], *four[1:], more[1]]):
        assert among(answers(results(together)), FOUR) == list(alone.verdicts)


@pytest.mark.slow
def test_a_seventh_adapter_is_beyond_the_family_and_does_change_what_is_claimed() -> None:
    four = [entry(name, 1000.0) for name in FOUR]
    more = [entry(name, 1000.0) for name in "efg"]
    assert among(answers(results([*four, *more])), FOUR) != list(answers(results(four)).verdicts)  # the control of the property


@settings(max_examples=8, deadline=None)
@given(values=st.lists(st.floats(min_value=0.5, max_value=1e6), min_size=10, max_size=12), kinds=st.booleans())
def test_identical_data_are_equivalent_and_never_give_a_win(values: list[float], kinds: bool) -> None:
    def draw(seed: int) -> Metrics:
        return {"time.jct": values[seed], "quality.test": round(values[seed] % 1, 2) if kinds else 0.5}

    made = answers(results([Entry(name, draw) for name in FOUR], seeds=range(len(values))))
    assert len(made.verdicts) == 12
    assert {verdict.outcome for verdict in made.verdicts} == {Outcome.EQUIVALENT}
    assert not any("better" in line or "faster" in line for line in made.summary)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(10, 15))
def test_the_order_of_the_file_only_turns_verdicts_round(seed: int, count: int) -> None:
    turned = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}
    pair = [Entry(name, steady(mean, spread=0.1, key=f"{name} {seed}")) for name, mean in (("a", 1000), ("b", 1100))]
    forth, back = (answers(results(entries, seeds=range(count))).verdicts for entries in (pair, pair[::-1]))
    assert [turned.get(verdict.outcome, verdict.outcome) for verdict in forth] == [verdict.outcome for verdict in back]


@settings(max_examples=30, deadline=None)
@given(
    differences=st.lists(
        st.one_of(st.floats(-5, 5), st.sampled_from([0.0, float("inf"), -float("inf")])), min_size=3, max_size=14
    ),
    margin=st.sampled_from([None, 0.5]),
)
def test_leaving_each_out_at_once_is_leaving_it_out_alone(differences: list[float], margin: float | None) -> None:
    at_once = judge_without_each(differences, margin=margin, alpha=0.05, rounding_scale=5.0)
    for place, found in enumerate(at_once):
        rest = [*differences[:place], *differences[place + 1 :]]
        alone = judge(rest, margin=margin, alpha=0.05, rounding_scale=5.0)
        assert (found.relation, found.p) == (alone.relation, alone.p)
        one, other = found.interval, alone.interval  # equal but for rounding: each made the sizes equal that are so among its own
        assert (one.estimate, one.low, one.high) == pytest.approx((other.estimate, other.low, other.high))


@pytest.mark.slow
def test_equal_distributions_give_few_wins_over_many_experiments() -> None:
    """At most 5 % of the experiments have a win in a question among the six pairs of four equal adapters."""
    experiments, wins = 120, 0
    for number in range(experiments):
        made = answers(results([Entry(name, _equal(f"{name} {number}")) for name in FOUR], questions={"time": "time.jct"}))
        wins += any(verdict.outcome in WINS for verdict in made.verdicts)
    assert wins <= 0.05 * experiments


@pytest.mark.slow
def test_a_planted_difference_is_found_in_most_experiments() -> None:
    """The control of the above: one standard deviation of the paired difference at 20 seeds, in at least 80 %."""
    experiments, found = 60, 0
    for number in range(experiments):
        pair = [Entry("a", _equal(f"a {number}")), Entry("b", _equal(f"b {number}", shift=0.1 * 2**0.5))]
        made = answers(results(pair, seeds=range(20), questions={"time": "time.jct"}, margin_percent=0.01))
        found += made.verdicts[0].outcome is Outcome.BETTER
    assert found >= 0.7 * experiments  # 80 % and the chance of 60 experiments


def _equal(key: str, shift: float = 0.0) -> Draw:
    def draw(seed: int) -> Metrics:
        return {"time.jct": 1000 * 2.718281828 ** (0.1 * random.Random(f"{key} {seed}").gauss(0, 1) + shift)}

    return draw
