"""Claims across tasks: a task is the unit, regret has frozen anchors, and what is too little for a claim is said."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from builders.made_results import Draw, Entry, Metrics, over_tasks, results
from builders.present import present
from tuneoff.experiment.matrix_parts import AnchorsPart
from tuneoff.judge.answers.answer import AcrossTasks, Answers, OverTasks
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.over_tasks import bounded, normalised
from tuneoff.record.run_record import RunStatus

pytest.importorskip("scipy")
ANCHORS = {"random_search": 0.9, "best_known": 0.98, "source": "made"}


def around(quality: float, jct: float, key: str) -> Draw:
    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{key} {seed}")
        value = quality + 0.001 * chance.gauss(0, 1)
        return {"quality.validation": value, "quality.test": value, "time.jct": jct * (1 + 0.01 * chance.gauss(0, 1))}

    return draw


def made(
    tasks: int,
    means: Mapping[str, tuple[float, float]],
    seeds: Sequence[int] = range(3),
    of: Callable[[str, int], Mapping[str, Any]] = lambda name, task: {},
    **changes: Any,
) -> Answers:
    """Return the answers of a file with tasks; `means`: quality and JCT by adapter, both different from task to task."""

    def draw(name: str, task: int) -> Draw:
        quality, jct = means[name]
        return around(quality - 0.002 * task, jct * (1 + task), f"{name} {task}")

    anchors = {f"t{task}": ANCHORS for task in range(tasks)}
    return answers(results(over_tasks(tasks, means, draw, of), seeds=seeds, **{"anchors": anchors, **changes}))


def question(found: Answers, name: str) -> AcrossTasks:
    (across,) = [one for one in found.across if one.question.name == name]
    return across


def over(found: AcrossTasks, one: str = "a", other: str = "b") -> OverTasks:
    (pair,) = [pair for pair in found.compared if (pair.one, pair.other) == (one, other)]
    return pair


def p(found: AcrossTasks, one: str = "a", other: str = "b") -> float:
    return present(over(found, one, other).p)


def test_one_that_is_ahead_in_every_task_is_claimed_over_these_tasks_only() -> None:
    found = question(made(12, {"a": (0.97, 1000), "b": (0.95, 2000)}), "quality")
    assert len(found.tasks) == 12
    assert p(found) < 0.05
    assert found.iqm_regret["a"].estimate < found.iqm_regret["b"].estimate
    assert over(found).ahead == (12, 0)
    assert "a is ahead of b by" in found.texts[0]
    assert any("The claim is over these 12 tasks alone: t0, t1" in text for text in found.texts)


def test_times_are_compared_by_their_ratio_and_have_no_regret() -> None:
    found = question(made(12, {"a": (0.97, 1000), "b": (0.95, 2000)}), "time")
    assert p(found) < 0.05
    assert not found.iqm_regret
    mean = present(over(found).mean)
    assert mean.low < math.log(0.5) < mean.high < 0
    assert mean.n == 36


def test_equal_adapters_are_not_claimed_to_differ() -> None:
    found = question(made(12, {"a": (0.96, 1000), "b": (0.96, 1000)}), "quality")
    assert p(found) > 0.05
    assert "no pair is shown to differ" in found.texts[0]


def test_the_unit_is_the_sampler_stream_so_few_tasks_need_more_seeds() -> None:
    """Two tasks of three seeds have six streams, and 15 * 2 / 2**6 is not below 0.05."""
    few = question(made(2, {"a": (0.97, 1000), "b": (0.90, 2000)}, seeds=range(3)), "quality")
    many = question(made(2, {"a": (0.97, 1000), "b": (0.90, 2000)}, seeds=range(6)), "quality")
    assert p(few) == pytest.approx(15 * 2 / 2**6)
    assert any("6 sampler streams (a task and a seed each) cannot show a difference" in text for text in few.texts)
    assert p(many) == pytest.approx(15 * 2 / 2**12)


def test_a_failed_run_is_the_worst_anchor_in_regret() -> None:
    status: Mapping[str, Mapping[int, RunStatus]] = {"a": {}, "b": {0: "failed", 1: "failed"}}
    means = {"a": (0.95, 1000), "b": (0.97, 1000)}
    found = question(made(12, means, of=lambda name, task: {"status": status[name]}), "quality")
    assert found.iqm_regret["a"].estimate < found.iqm_regret["b"].estimate <= 1
    assert any("24 runs failed, and counts as the worst anchor in the IQM" in text for text in found.texts)
    control = question(made(12, means), "quality").iqm_regret
    assert control["a"].estimate > control["b"].estimate


def test_without_anchors_quality_is_not_compared_and_time_is() -> None:
    found = made(12, {"a": (0.97, 1000), "b": (0.95, 2000)}, anchors={})
    assert question(found, "quality").tasks == ()
    assert "the file has no anchors" in question(found, "quality").texts[0]
    assert p(question(found, "time")) < 0.05
    assert any("The file has no anchors" in limit for limit in found.limits)


def test_a_task_without_anchors_is_left_out_and_named() -> None:
    anchors = {f"t{task}": ANCHORS for task in range(11)}
    found = question(made(12, {"a": (0.97, 1000), "b": (0.95, 2000)}, anchors=anchors), "quality")
    assert len(found.tasks) == 11
    assert any("1 task left out, because no two frameworks have a value there: t11" in text for text in found.texts)


def test_a_file_without_tasks_claims_nothing_across() -> None:
    entries = [Entry("a", around(0.97, 1000, "a")), Entry("b", around(0.9, 1000, "b"))]
    assert answers(results(entries)).across == ()


def test_the_claim_across_tasks_leads_the_summary() -> None:
    found = made(12, {"a": (0.97, 1000), "b": (0.95, 2000)}, seeds=range(10))
    assert found.summary[0].startswith("Time (time.jct), over these 12 tasks, random search, by paired differences: a is ahead")
    assert any("a is better in 12 of 12 (12 robust)" in line for line in found.summary)


def test_with_too_few_seeds_for_pairs_the_tasks_still_speak() -> None:
    found = made(12, {"a": (0.97, 1000), "b": (0.95, 2000)}, seeds=range(3))
    text = "\n".join(found.summary)
    assert "on average, and in 12 of 12 tasks" in text
    assert "No verdicts within a task: 3 seeds planned" in text


@pytest.mark.parametrize(("search", "best"), [(0.9, 0.98), (0.5, 0.1)])
def test_regret_is_one_at_random_search_and_zero_at_the_best_known(search: float, best: float) -> None:
    anchors = AnchorsPart(random_search=search, best_known=best, source="made")
    assert normalised(search, anchors) == 1
    assert normalised(best, anchors) == 0
    assert normalised((search + best) / 2, anchors) == pytest.approx(0.5)


def test_a_failure_is_never_better_than_a_success_that_is_worse_than_random_search() -> None:
    assert bounded([0.2, 1.7, math.inf]) == [0.2, 1.7, 1.7]
    assert bounded([0.2, math.inf]) == [0.2, 1.0]


@pytest.mark.slow
def test_further_adapters_change_no_claim_between_the_others() -> None:
    """Also one that fails everywhere, and one that is skipped in most tasks."""
    four = {"a": (0.97, 1000), "b": (0.96, 1100), "c": (0.955, 1500), "d": (0.95, 2000)}
    fewer, more = made(12, four), made(12, {**four, "e": (0.9, 900), "f": (0.99, 5000)})
    for name in ("quality", "time"):
        one, other = question(fewer, name), question(more, name)
        assert set(one.compared) < set(other.compared)
        assert {label: other.iqm_regret[label] for label in one.iqm_regret} == dict(one.iqm_regret)
        assert any(pair.p is not None and pair.p < 0.05 for pair in one.compared)


@pytest.mark.slow
def test_an_adapter_that_has_few_tasks_takes_none_from_the_others() -> None:
    entries = [
        Entry(name, around(0.97 - cost / 1e5, cost * (1 + task), f"{name} {task}"), variant={"task": f"t{task}"})
        for task in range(12)
        for name, cost in (("a", 1000.0), ("b", 2000.0), ("rare", 500.0))
        if name != "rare" or task < 5
    ]
    found = question(answers(results(entries, anchors={f"t{task}": ANCHORS for task in range(12)})), "time")
    assert len(found.tasks) == len(found.tasks_of["a", "b"]) == 12
    assert p(found) < 0.05
    assert over(found, "a", "rare").tasks == tuple(f"t{task}" for task in range(5))
    assert len(found.tasks_of["a", "rare"]) == 5
    assert any("Pairs that have values in fewer tasks: a and rare in 5" in text for text in found.texts)
