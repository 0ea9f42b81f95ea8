"""Folders as they come: nothing run yet, one seed, one adapter, skipped, emulated, damaged. Each has a correct answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.made_results import Entry, results, steady, verdict_on
from builders.present import present
from builders.results_folders import write_examples
from tuneoff.errors import ResultsError
from tuneoff.judge.answers.answer import Answers, Outcome
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.anytime import curves
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import lines
from tuneoff.judge.results import Results, read_results
from tuneoff.record.metric_value import missing
from tuneoff.record.store import FILE_NAME, RUNS

pytest.importorskip("scipy")
FAST, SLOW = steady(1000, key="fast"), steady(2000, key="slow")


def checked(made: Results) -> Answers:
    """Return the answers, which must be tellable in every form."""
    found = answers(made)
    assert list(lines(found))
    assert json.loads(json.dumps(to_json(found), allow_nan=False))["name"] == made.plan.name
    curves(made)
    assert sum(found.statuses.values()) == len(made.planned)
    assert sum(len(group.runs) for group in found.groups) == len(made.planned)
    return found


def test_a_plan_of_which_nothing_ran_yet_has_groups_and_no_values() -> None:
    seeds = range(10)
    found = checked(results([Entry("a", FAST, absent=seeds), Entry("b", SLOW, absent=seeds)]))
    assert found.statuses == {"planned": 20}
    assert {verdict.outcome for verdict in found.verdicts} == {Outcome.UNDECIDED}
    assert all(verdict.reason == "0 of 10 planned seeds have ended in both" for verdict in found.verdicts)
    assert all(group.success is None for group in found.groups)
    assert all(estimate.median is None for group in found.groups for estimate in group.estimates.values())


def test_a_single_seed_has_values_without_intervals() -> None:
    found = checked(results([Entry("a", FAST), Entry("b", SLOW)], seeds=[7]))
    assert present(found.groups[0].estimates["time.jct"].median).n == 1
    assert "1 seed planned for both, and a verdict needs 10" in found.summary[0]
    assert found.limits[0].startswith("1 seed: too few for any verdict")


def test_a_single_adapter_has_nothing_to_be_compared_with() -> None:
    found = checked(results([Entry("a", FAST)]))
    assert not found.verdicts
    assert found.summary == ("No verdicts: there are no two frameworks in one scope to compare.",)
    assert found.groups[0].estimates["time.jct"].median is not None


def test_adapters_of_different_samplers_are_in_no_pair() -> None:
    found = checked(results([Entry("a", FAST, sampler="random"), Entry("b", SLOW, sampler="tpe")]))
    assert not found.verdicts
    assert [scope.text for scope in found.scopes] == ["random", "tpe"]


def test_a_skipped_adapter_is_counted_with_its_reason_and_in_no_verdict() -> None:
    found = checked(results([Entry("a", FAST), Entry("b", SLOW), Entry("c", SLOW, skipped="it has no such sampler")]))
    assert found.statuses == {"done": 20, "skipped": 10}
    assert {(verdict.one, verdict.other) for verdict in found.verdicts} == {("a", "b")}
    assert any("10 runs of c skipped: it has no such sampler" in limit for limit in found.limits)
    assert [run.status for run in found.groups[2].runs] == ["skipped"] * 10


def test_a_sampler_that_is_another_one_points_to_it_and_is_compared_by_its_runs() -> None:
    entries = [
        Entry("a", FAST, sampler="random"),
        Entry("a", FAST, sampler="default", same_as="random"),
        Entry("b", SLOW, sampler="random"),
        Entry("b", steady(500, key="tpe"), sampler="default"),
    ]
    found = checked(results(entries))
    groups = {(group.label, group.scope.text): group for group in found.groups}
    assert groups["a", "default"].same_as == "random"
    assert {run.status for run in groups["a", "default"].runs} == {"skipped"}
    outcomes = {row.scope.text: row.outcome for row in found.verdicts if row.question.name == "time"}
    assert outcomes == {"random": Outcome.BETTER, "default": Outcome.WORSE}


def test_two_samplers_that_are_the_same_other_one_are_compared_once() -> None:
    entries = [Entry(name, draw, sampler="random") for name, draw in (("a", FAST), ("b", SLOW))]
    entries += [Entry(name, FAST, sampler="default", same_as="random") for name in "ab"]
    assert {row.scope.text for row in checked(results(entries)).verdicts} == {"random"}


def test_an_emulated_adapter_is_shown_and_in_no_verdict() -> None:
    found = checked(results([Entry("a", FAST), Entry("b", SLOW), Entry("k", FAST, emulated=True)]))
    assert {(verdict.one, verdict.other) for verdict in found.verdicts} == {("a", "b")}
    group = found.groups[2]
    assert group.emulated
    assert group.label == "k@emulated"
    assert group.estimates["time.jct"].median is not None
    assert any("k@emulated: emulated, so shown and labelled" in limit for limit in found.limits)


def test_an_emulation_that_is_found_at_run_time_counts_as_one() -> None:
    made = results([Entry("a", FAST), Entry("b", SLOW)])
    records = [replace(record, emulated=record.run_spec().adapter == "b") for record in made.records]
    found = checked(replace(made, records=tuple(records), standing={record.run_id: record for record in records}))
    assert not found.verdicts
    assert [group.emulated for group in found.groups] == [False, True]


def test_a_missing_metric_is_missing_with_its_reason_and_never_zero() -> None:
    entries = [Entry(name, lambda seed: {"time.jct": missing("ms", "un-deploy did not end")}) for name in "ab"]
    found = checked(results(entries))
    estimate = found.groups[0].estimates["time.jct"]
    assert estimate.median is None
    assert estimate.reasons == {"un-deploy did not end": 10}
    assert all(value.value is None for value in estimate.values)
    assert verdict_on(found).outcome is Outcome.NOT_JUDGED
    assert "un-deploy did not end" in verdict_on(found).reason
    assert any("time.jct has no value in 20 done runs" in limit for limit in found.limits)


def test_flags_of_the_machine_are_counted() -> None:
    found = checked(results([Entry("a", FAST, flags={0: ["machine_drift"], 1: ["best_tied"]}), Entry("b", SLOW)]))
    assert any("1 run (machine_drift: 1)" in limit for limit in found.limits)


@pytest.mark.parametrize(
    "broken",
    [
        {"confidence": "high"},
        {"questions": []},
        {"margin_percent": -1},
        {"family_size": 0},
        {"anchors": {"": 3}},
    ],
)
def test_a_damaged_analysis_is_refused_and_no_default_decides_in_its_place(broken: dict[str, Any]) -> None:
    with pytest.raises(ResultsError, match=rf"the analysis of a plan is damaged: {next(iter(broken))}.*; begin a new folder"):
        answers(results([Entry("a", FAST), Entry("b", SLOW)], **broken))


def test_a_primary_metric_that_no_question_asks_leads_as_one_of_its_own() -> None:
    found = checked(results([Entry("a", FAST), Entry("b", SLOW)], primary_metric="quality.validation"))
    assert next((one.name, one.metric) for one in found.questions) == ("primary", "quality.validation")


def test_names_from_outside_are_told_as_they_are() -> None:
    found = checked(results([Entry("<script>", FAST, status={0: "failed"}), Entry("b", SLOW)]))
    assert found.groups[0].label == "<script>"


def test_a_folder_of_real_records_is_answered_and_a_run_that_was_begun_and_has_none_is_interrupted(tmp_path: Path) -> None:
    write_examples(tmp_path / "r", seeds=range(3))
    assert checked(read_results(tmp_path / "r")).statuses == {"done": 4}
    record = next(iter(sorted((tmp_path / "r" / RUNS).glob(f"*/*/{FILE_NAME}"))))
    record.unlink()
    found = checked(read_results(tmp_path / "r"))
    assert found.statuses == {"done": 3, "interrupted": 1}
    reasons: Sequence[str | None] = [run.reason for group in found.groups for run in group.runs if run.status == "interrupted"]
    assert reasons == ["its tuneoff command was killed"]
