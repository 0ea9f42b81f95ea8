"""What a claim across tasks names beside its size, and what takes it back: disturbed runs, failures, billed time, weights."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from builders.made_results import Draw, over_tasks, results
from builders.present import present
from judge.answers.test_across_tasks import around, over, p, question
from judge.answers.test_billing import prices
from judge.answers.test_modelled_energy import METRIC, metered, uses
from tuneoff.experiment.accounting.declared import Accounting
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.compute import answers

pytest.importorskip("scipy")
UNCHECKED = "not checked without disturbed runs"


def made(
    draw: Callable[[str, int], Draw],
    of: Callable[[str, int], Mapping[str, Any]] = lambda label, task: {},
    seeds: Sequence[int] = range(3),
    **changes: Any,
) -> Answers:
    """Return 12 tasks of `a` and `b`; `of`: what else an entry has, by label and task."""
    return answers(results(over_tasks(12, "ab", draw, of), seeds=seeds, **changes))


def timed(**times: float) -> Callable[[str, int], Draw]:
    """Return runs that take so long by label, with a little chance."""
    return lambda label, task: around(0.9, times[label], f"{label} {task}")


def test_a_claim_across_tasks_on_disturbed_runs_alone_says_so() -> None:
    found = made(timed(a=1000, b=2000), lambda label, task: {"disturbed": range(3)})
    time = question(found, "time")
    assert p(time) < 0.05
    assert over(time).disturbance.to_json() == {"runs": 72, "disturbed": 72, "unknown": 0}
    for text in (time.texts[0], found.summary[0]):
        assert "72 of 72 runs disturbed" in text
        assert UNCHECKED in text
    told = json.loads(json.dumps(to_json(found)))["across"]
    (pair,) = next(one for one in told if one["question"] == "time")["compared"]
    assert pair["disturbance"]["disturbed"] == 72
    assert pair["without_disturbed"] == UNCHECKED


@pytest.mark.parametrize(("disturbed", "said"), [(6, "holds without disturbed runs"), (7, UNCHECKED), (0, "")])
def test_six_undisturbed_streams_across_tasks_are_enough_and_five_are_not(disturbed: int, said: str) -> None:
    """One seed per task; a pair is disturbed if either run is."""
    found = made(timed(a=1000, b=2000), lambda label, task: {"disturbed": [0] if label == "a" and task < disturbed else []}, [0])
    assert over(question(found, "time")).without_disturbed == said


def test_a_difference_across_tasks_that_disturbed_runs_make_does_not_hold_without_them() -> None:
    def draw(label: str, task: int) -> Draw:
        slow = 0.0 if label == "a" else 900.0 if task < 6 else -20.0
        return lambda seed: {"time.jct": 1000.0 + slow + 2 * task + seed}

    found = question(made(draw, lambda label, task: {"disturbed": range(3 if task < 6 else 0)}, family_size=1), "time")
    assert p(found) < 0.05
    assert over(found).without_disturbed == "does not hold without disturbed runs"
    assert "36 of 72 runs disturbed, does not hold without disturbed runs" in found.texts[0]


def test_runs_without_samples_are_unknown_to_a_claim_across_tasks() -> None:
    found = question(made(timed(a=1000, b=2000), lambda label, task: {"unsampled": range(3)}), "time")
    assert over(found).without_disturbed == UNCHECKED
    assert "0 of 72 runs disturbed, 72 unknown" in found.texts[0]


def billed(granularity: float, used: Mapping[str, float]) -> Answers:
    """Return runs that use so many seconds by label, a little more with each task, at 1 USD for each that is billed."""

    def draw(label: str, task: int) -> Draw:
        seconds = used[label] + 0.0001 * task
        paid = math.ceil(seconds / granularity) * granularity
        return lambda seed: {"time.jct": 1000 * seconds, "cost.job": paid}

    accounting = Accounting(prices=prices(granularity))
    return made(draw, accounting=accounting, questions={"cost": "cost.job"}, primary_metric="cost.job")


def test_times_that_a_unit_of_billing_hides_have_no_order_in_cost_across_tasks() -> None:
    """0.99 s cost one second and 1.01 s two: half of the bill, and half a second less of one second is a factor of 2."""
    found = question(billed(1.0, {"a": 0.99, "b": 1.01}), "cost")
    mean = present(over(found).mean)
    assert (mean.low, mean.high) == pytest.approx((math.log(1 / 4), 0.0))
    assert p(found) == 1.0
    fine = question(billed(0.01, {"a": 0.99, "b": 2.0}), "cost")  # control
    assert p(fine) < 0.05
    assert present(over(fine).mean).high < math.log(0.51)


def with_failures(failed: Mapping[str, int], one: float = 900, other: float = 1000) -> Answers:
    """Return 36 pairs; of each adapter the runs of seed 0 fail in so many tasks, first those of `a`."""
    places = {"a": range(failed.get("a", 0)), "b": range(12 - failed.get("b", 0), 12)}

    def of(label: str, task: int) -> Mapping[str, Any]:
        return {"status": {0: "failed"} if task in places[label] else {}}

    return made(timed(a=one, b=other), of)


def test_who_is_faster_in_thirty_pairs_and_fails_in_six_is_not_claimed_ahead() -> None:
    """The greatest difference stands for a failure in the mean: some 12 %, and 30 pairs of 10 % outweigh six of these."""
    found = question(with_failures({"a": 6}), "time")
    assert over(found).failures == (6, 0)
    assert p(found) > 0.05
    mean = present(over(found).mean)
    assert mean.low < 0 < mean.high
    assert "no pair is shown to differ" in found.texts[0]
    assert p(question(with_failures({}), "time")) < 0.05  # control


def test_one_failure_takes_no_claim_that_ranks_make_too_and_is_named() -> None:
    found = question(with_failures({"a": 1, "b": 2}), "time")
    assert p(found) < 0.05
    assert "a is ahead of b" in found.texts[0]
    assert "1 run of a failed, 2 runs of b failed" in found.texts[0]


def test_the_failures_of_who_is_behind_take_nothing_from_the_claim() -> None:
    found = question(with_failures({"b": 6}), "time")
    assert p(found) == pytest.approx(p(question(with_failures({}), "time")), abs=0.01)
    assert "a is ahead of b" in found.texts[0]


@pytest.mark.parametrize("is_modelled", [True, False])
def test_a_claim_on_modelled_energy_across_tasks_names_the_weights_and_their_servers(is_modelled: bool) -> None:
    def draw(label: str, task: int) -> Draw:
        amount, key = (10 if label == "a" else 20), f"{label} {task}"
        return uses(amount, amount, key) if is_modelled else metered(amount, "derived", key)

    found = made(draw, questions={"energy": METRIC}, primary_metric=METRIC)
    assert p(question(found, "energy")) < 0.05
    assert over(question(found, "energy")).is_estimated is is_modelled
    said = "estimated by a model, at every weight from 0.19 to 0.937, 287 servers published since 2023"
    assert (said in question(found, "energy").texts[0]) is is_modelled
    assert (said in found.summary[0]) is is_modelled
    (told,) = json.loads(json.dumps(to_json(found)))["across"][0]["compared"]
    assert ((told["weights"] or {}).get("servers") == "287 servers published since 2023") is is_modelled
