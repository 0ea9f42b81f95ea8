"""Failed and missing runs: worse than any success, no information where both failed, and never dropped in silence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from builders.made_results import Entry, results, steady, verdict_on
from builders.present import present
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.answers.compute import answers
from tuneoff.record.run_record import RunStatus

pytest.importorskip("scipy")
FAST, SLOW = steady(1000, key="fast"), steady(2000, key="slow")


def all_failed(seeds: int) -> dict[int, RunStatus]:
    """Return the status of so many first seeds."""
    return dict.fromkeys(range(seeds), "failed")


def test_a_failed_run_is_worse_than_any_success_in_either_direction() -> None:
    entries = [Entry("a", FAST, status={3: "failed", 4: "timeout"}), Entry("b", SLOW)]
    made = answers(results(entries))
    differences = {row.seed: row for row in verdict_on(made).differences}
    assert differences[3].difference == differences[4].difference == math.inf
    assert differences[3].reason == "one failed"
    assert differences[3].one is None
    assert {row.seed: row.difference for row in verdict_on(made, "quality").differences}[3] == -math.inf
    assert verdict_on(made).failures == (2, 0)
    turned = answers(results(entries[::-1]))
    assert {row.seed: row.difference for row in verdict_on(turned).differences}[3] == -math.inf


def test_enough_failures_turn_a_faster_adapter_into_the_worse_one() -> None:
    entries = [Entry("a", FAST, status=all_failed(19)), Entry("b", SLOW)]
    verdict = verdict_on(answers(results(entries, seeds=range(20))))
    assert verdict.outcome is Outcome.WORSE
    assert not verdict.is_robust
    assert any(one.choice == "without failures" and one.outcome is not Outcome.WORSE for one in verdict.sensitivities)
    none = [Entry("a", FAST), Entry("b", SLOW)]  # control
    assert verdict_on(answers(results(none, seeds=range(20)))).outcome is Outcome.BETTER


def test_a_failure_is_in_the_median_of_its_group_and_in_its_success_rate() -> None:
    made = answers(results([Entry("a", FAST, status=all_failed(6)), Entry("b", SLOW)]))
    group = made.groups[0]
    assert present(group.estimates["time.jct"].median).estimate == math.inf
    success = present(group.success)
    assert success.low < 0.4 < success.high
    assert success.estimate == pytest.approx(0.4)
    assert group.estimates["time.jct"].reasons == {"failed: planted": 6}
    assert any("6 runs failed or timed out (a random: 6)" in limit for limit in made.limits)


def test_seeds_in_which_both_failed_are_ties_and_show_no_equivalence() -> None:
    status = all_failed(12)
    made = answers(results([Entry("a", FAST, status=status), Entry("b", FAST, status=status)], seeds=range(20)))
    verdict = verdict_on(made)
    assert {row.difference for row in verdict.differences} == {0.0}
    assert [row.reason for row in verdict.differences].count("both failed: counted as no difference") == 12
    assert verdict.outcome is Outcome.UNDECIDED
    assert "both failed in 12 seeds" in verdict.reason
    few = all_failed(2)  # control: the seeds that are left show it
    entries = [Entry("a", FAST, status=few), Entry("b", FAST, status=few)]
    assert verdict_on(answers(results(entries, seeds=range(20)))).outcome is Outcome.EQUIVALENT


def test_two_adapters_that_always_fail_are_not_called_equivalent() -> None:
    status = all_failed(10)
    made = answers(results([Entry("a", FAST, status=status), Entry("b", FAST, status=status)]))
    assert {verdict.outcome for verdict in made.verdicts} == {Outcome.UNDECIDED}
    assert all(group.success is not None and group.success.estimate == 0 for group in made.groups)


def test_an_interrupted_or_unstarted_run_is_missing_and_verdicts_wait_for_it() -> None:
    made = answers(results([Entry("a", FAST, status={9: "interrupted"}, absent=[8]), Entry("b", SLOW)]))
    verdict = verdict_on(made)
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.reason == "8 of 10 planned seeds have ended in both"
    assert [row.difference for row in verdict.differences][8:] == [None, None]
    assert made.statuses == {"done": 18, "interrupted": 1, "planned": 1}
    assert "The matrix is not finished: of 20 planned runs 1 interrupted and 1 planned" in made.limits[0]
    assert [run.status for run in made.groups[0].runs][8:] == ["planned", "interrupted"]
    assert present(made.groups[0].success).n == 8


def test_a_run_that_was_repeated_counts_once() -> None:
    entries = [Entry("a", FAST), Entry("b", SLOW)]
    made = results(entries)
    first, second = made.records[:2]
    again = [replace(first, execution_id="later"), replace(second, execution_id="cut", status="interrupted", reason="stopped")]
    warm_up = replace(first, run_id="warm-up", execution_id="warm")
    found = answers(replace(made, records=(*made.records, *again, warm_up, replace(warm_up, execution_id="warmer"))))
    assert found.statuses == {"done": 20}
    text = "2 further executions of repeated runs (1 done and 1 interrupted): kept, and counted nowhere."
    assert [limit for limit in found.limits if "repeated" in limit] == [text]  # warm-ups count nowhere anyway
