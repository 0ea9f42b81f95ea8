"""What is claimed where other programs used the processors during runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from builders.made_results import Entry, over_tasks, results, steady, verdict_on
from builders.present import present
from tuneoff.judge.answers.answer import WITHOUT_DISTURBED, Answers, Outcome, Sensitivity, Verdict
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import lines
from tuneoff.judge.answers.run_values import disturbance
from tuneoff.judge.runs import grouped

pytest.importorskip("scipy")
FAST, SLOW = steady(1000, key="a"), steady(2000, key="b")
UNCHECKED = "not checked without disturbed runs"


def made(disturbed: Any = (), other: Any = (), *, unsampled: Any = (), seeds: int = 10) -> Answers:
    """Return the answers on a fast and a slow adapter with disturbed runs of either."""
    entries = [Entry("a", FAST, disturbed=disturbed, unsampled=unsampled), Entry("b", SLOW, disturbed=other)]
    return answers(results(entries, range(seeds)))


def without(verdict: Verdict) -> list[Sensitivity]:
    return [one for one in verdict.sensitivities if one.choice == WITHOUT_DISTURBED]


def claim(found: Answers) -> str:
    (text,) = [one.sentence for one in found.claims if "is faster than" in one.text]
    return text


def test_a_claim_on_disturbed_runs_alone_says_so_in_place_of_robust() -> None:
    found = made(range(20), range(20), seeds=20)
    verdict = verdict_on(found)
    assert (verdict.outcome, verdict.is_robust, verdict.robustness) == (Outcome.BETTER, False, UNCHECKED)
    assert "40 of 40 runs disturbed" in claim(found)
    assert UNCHECKED in claim(found)
    assert "robust" not in claim(found)
    told = "\n".join(lines(found))
    assert UNCHECKED in told
    assert "(robust" not in told
    (row,) = [one for one in to_json(found)["verdicts"] if one["question"] == "time"]
    assert (row["is_robust"], row["robustness"]) == (False, UNCHECKED)
    assert row["disturbance"] == {"runs": 40, "disturbed": 40, "unknown": 0}
    assert any("40 of 40 runs (flag disturbed)" in limit for limit in found.limits)


def test_ten_seeds_with_one_disturbed_run_can_be_robust() -> None:
    found = made([3])
    verdict = verdict_on(found)
    assert (verdict.outcome, verdict.is_robust, verdict.robustness) == (Outcome.BETTER, True, "robust")
    assert "(robust, " in claim(found)
    assert "1 of 20 runs disturbed" in claim(found)
    assert present(without(verdict)[0].interval).n == 9


@pytest.mark.parametrize(("disturbed", "robustness"), [(4, "robust"), (5, UNCHECKED)])
def test_six_undisturbed_pairs_are_enough_and_five_are_not(disturbed: int, robustness: str) -> None:
    assert verdict_on(made(range(disturbed))).robustness == robustness


def test_a_pair_is_disturbed_if_either_run_is() -> None:
    assert verdict_on(made([0, 1], [2, 3])).robustness == "robust"
    assert verdict_on(made([0, 1, 2], [3, 4])).robustness == UNCHECKED
    assert verdict_on(made([0, 1, 2, 3, 4], [0, 1, 2])).disturbance.to_json() == {"runs": 20, "disturbed": 8, "unknown": 0}


def test_a_difference_that_disturbed_runs_make_is_not_robust() -> None:
    slow = Entry("b", lambda seed: {"time.jct": 1000.0 + (900 if seed < 12 else -100) + seed}, disturbed=range(12))
    entries = [Entry("a", lambda seed: {"time.jct": 1000.0}), slow]
    verdict = verdict_on(answers(results(entries, range(20), family_size=1)))
    assert verdict.outcome is Outcome.BETTER
    assert (verdict.robustness, verdict.is_robust) == ("not robust", False)
    assert [one.outcome for one in without(verdict)] == [Outcome.WORSE]
    assert "another verdict" in claim(answers(results(entries, range(20), family_size=1)))


def test_where_nothing_is_disturbed_nothing_is_left_out_and_the_claim_counts_it() -> None:
    found = made()
    assert without(verdict_on(found)) == []
    assert verdict_on(found).robustness == "robust"
    assert "0 of 20 runs disturbed" in claim(found)
    assert not any("flag disturbed" in limit for limit in found.limits)


def test_runs_without_samples_are_unknown_and_no_claim_on_them_is_robust() -> None:
    found = made(unsampled=range(10))
    assert verdict_on(found).robustness == UNCHECKED
    assert "0 of 20 runs disturbed, 10 unknown" in claim(found)
    assert any("In 10 of 20 runs it is not known" in limit for limit in found.limits)
    assert verdict_on(made(unsampled=[0])).robustness == "robust"


def test_what_is_not_robust_for_another_reason_is_called_so() -> None:
    values = [950.0, 960.0, 955.0, 953.0, 957.0, 951.0, 958.0, 952.0, 959.0, 1400.0]
    entries = [
        Entry("a", lambda seed: {"time.jct": 1000.0}, disturbed=range(10)),
        Entry("b", lambda seed: {"time.jct": values[seed]}),
    ]
    verdict = verdict_on(answers(results(entries)))
    assert verdict.robustness == "not robust"
    assert WITHOUT_DISTURBED not in {one.choice for one in verdict.changing}


def test_an_execution_that_stands_for_two_runs_counts_once() -> None:
    entries = [Entry("a", FAST, disturbed=[1]), Entry("a", FAST, sampler="default", same_as="random")]
    runs = [run for group in grouped(results(entries)) for run in group.runs]
    assert len(runs) == 20
    assert disturbance(runs).to_json() == {"runs": 10, "disturbed": 1, "unknown": 0}


@pytest.mark.parametrize(("disturbed", "said"), [(range(10), UNCHECKED), ([0], "2 of 20 runs disturbed")])
def test_an_equivalence_tells_disturbed_runs_and_that_nobody_can_check_it(disturbed: Sequence[int], said: str) -> None:
    equal = [Entry(name, steady(1000, key=name), disturbed=disturbed) for name in "ab"]
    (text,) = [one.sentence for one in answers(results(equal)).claims if one.question.startswith("Time")]
    assert "equivalent" in text
    assert said in text
    assert (UNCHECKED in text) is (said == UNCHECKED)


@pytest.mark.parametrize(
    ("disturbed", "said"),
    [
        (lambda task: [0], "(5 robust); 10 of 100 runs disturbed"),
        (lambda task: range(10 if task < 2 else 0), f"(3 robust, 2 {UNCHECKED})"),
    ],
)
def test_counts_over_scopes_tell_disturbed_runs_and_how_many_could_not_be_checked(
    disturbed: Callable[[int], Sequence[int]], said: str
) -> None:
    draws = {"a": FAST, "b": SLOW}
    tasks = over_tasks(5, "ab", lambda name, task: draws[name], lambda name, task: {"disturbed": disturbed(task)})
    assert any(said in one.sentence for one in answers(results(tasks)).claims if "in 5 of 5" in one.text)
