"""Claims across tasks that must not be made: before all runs have ended, over failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from builders.made_results import Draw, Metrics, over_tasks, results
from builders.present import present
from judge.answers.test_across_tasks import ANCHORS, over, p, question
from judge.answers.test_across_tasks import made as over_means
from tuneoff.judge.answers.answer import Answers, OverTasks
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import lines
from tuneoff.record.run_record import RunStatus

pytest.importorskip("scipy")


def made(tasks: int = 12, failed_in: int = 0, absent: Sequence[int] = (), seeds: int = 3, **changes: Any) -> Answers:
    """Return two adapters over tasks: `b` is better in all; in the first `failed_in` tasks all of its runs fail."""
    status: dict[int, RunStatus] = dict.fromkeys(range(seeds), "failed")

    def of(name: str, task: int) -> Mapping[str, Any]:
        is_failed, is_absent = name == "b" and task < failed_in, name == "a" and task == 0
        return {"status": status if is_failed else {}, "absent": absent if is_absent else ()}

    return over_means(tasks, {"a": (0.95, 1500.0), "b": (0.97, 1000.0)}, range(seeds), of, **changes)


@pytest.mark.parametrize("name", ["quality", "time"])
def test_a_task_in_which_all_runs_of_one_failed_counts_against_it(name: str) -> None:
    found = question(made(failed_in=5), name)
    assert len(found.tasks) == 12
    assert p(found) > 0.05
    assert "no pair is shown to differ" in found.texts[0]
    assert over(question(made(), name)).ahead == (0, 12)  # control


def test_a_failed_run_among_runs_without_the_metric_makes_no_task_failed() -> None:
    def without(seed: int) -> dict[str, float]:
        return {"quality.test": 0.9}

    status: Mapping[str, Mapping[int, RunStatus]] = {"a": {}, "b": {0: "failed"}}
    entries = over_tasks(3, "ab", lambda name, task: without, lambda name, task: {"status": status[name]})
    assert question(answers(results(entries, seeds=range(3))), "time").tasks == ()


def test_nothing_is_claimed_across_tasks_before_all_planned_runs_have_ended() -> None:
    found = made(absent=[2])
    time = question(found, "time")
    assert not time.compared
    assert "nothing is claimed yet: 71 of 72 planned runs of these tasks have ended" in time.texts[0]
    assert not any("is ahead of" in line for line in lines(found))
    assert question(made(), "time").compared  # control


def test_a_family_that_is_too_large_for_the_streams_says_so() -> None:
    small, large = made(tasks=5, seeds=2), made(tasks=5, seeds=2, family_size=30)  # the least p of 10 streams, 15 pairs is 0.029
    assert "b is ahead of a by" in question(small, "time").texts[0]
    assert "no pair is shown to differ" in question(large, "time").texts[0]
    assert any("10 sampler streams (a task and a seed each) cannot show" in text for text in question(large, "time").texts)


@pytest.mark.slow
def test_anchors_the_wrong_way_round_make_nobody_better() -> None:
    inverted = {f"t{task}": {**ANCHORS, "best_known": 0.8} for task in range(12)}
    found = question(made(anchors=inverted), "quality")
    assert found.tasks == ()
    assert not found.compared
    assert "b is ahead of a" in question(made(), "quality").texts[0]  # control


def test_values_below_zero_have_no_ratio_and_claim_nothing() -> None:
    """Minus the logarithm of the size, as of what is better great, would put -3 behind 0.1."""

    def of(overhead: float) -> Draw:
        return lambda seed: {"time.jct": 1000.0, "overhead.per_trial": overhead * (1 + 0.01 * seed)}

    def compared(less: float) -> OverTasks:
        entries = over_tasks(12, "ab", lambda name, task: of(less if name == "a" else 0.1))
        questions = {"time": "time.jct", "overhead": "overhead.per_trial"}
        return over(question(answers(results(entries, seeds=range(3), questions=questions)), "overhead"))

    assert compared(-3.0).p is None
    assert "has no ratio" in compared(-3.0).reason
    assert present(compared(0.01).p) < 0.05  # control


@pytest.mark.slow
def test_many_families_say_how_many_false_claims_there_may_be() -> None:
    def told(tasks: int) -> list[str]:
        return [limit for limit in made(tasks, seeds=10).limits if "family of its own" in limit]

    (text,) = told(10)  # two questions each
    assert "with an error of 5 %: of the 20 that are judged, up to 1 on average hold a false claim" in text
    assert told(9) == []


def test_claims_over_tasks_rest_on_the_seeds_declared_before_the_first_run() -> None:
    def draw(label: str, task: int) -> Draw:
        def of(seed: int) -> Metrics:
            is_fast = (label == "a") == (seed < 3)  # the seeds that are added say the opposite
            return {"time.jct": (1000.0 if is_fast else 2000.0) * (1 + 0.01 * (seed + task)), "quality.test": 0.9}

        return of

    def compared(seeds: int, declared: int) -> Sequence[OverTasks]:
        made = results(over_tasks(12, "ab", draw), range(seeds))
        plan = replace(made.plan, analysis={**made.plan.analysis, "seeds": list(range(declared))})
        return next(one for one in answers(replace(made, plan=plan)).across if one.question.name == "time").compared

    assert compared(9, declared=3) == compared(3, declared=3)
    assert compared(9, declared=9) != compared(3, declared=3)  # control
