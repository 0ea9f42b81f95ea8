"""A run that failed is worse than any that is done: the same median in JSON, page, terminal and diff."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from builders.made_results import Entry, results
from tuneoff.base.format import MISSING
from tuneoff.judge.answers.answers_json import to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.added import PER_JOB, PER_REPORT, PER_TRIAL, REPORTS, Longest, added
from tuneoff.judge.diff.compare import compared
from tuneoff.judge.results import Results
from tuneoff.judge.summary_rows import summary_rows
from tuneoff.record.run_record import RunStatus
from tuneoff.tell.page.frameworks import framework_tables
from tuneoff.tell.report.tables import FigureCell, _added, render

pytest.importorskip("scipy")
COLUMN = 3  # "JCT" on the page


def made(status: Mapping[int, RunStatus]) -> Results:
    """Return four runs of 1, 2, 3 and 4 s, whose accuracy falls with the seed."""

    def draw(seed: int) -> dict[str, float]:
        seconds = 1.0 + seed
        return {"time.jct": 1000 * seconds, "quality.test": 1 - seconds / 10, "waste.default.time": 1000 * seconds}

    return results([Entry("optuna", draw, status=status)], seeds=range(4))


def on_page(found: Results, table: int, column: int) -> FigureCell:
    (group,) = answers(found).groups
    return framework_tables([group])[table].cells(group)[column]


def test_one_failed_run_moves_the_median_alike_everywhere() -> None:
    found = made({1: "failed"})
    (group,) = to_json(answers(found))["groups"]
    assert group["estimates"]["time.jct"]["median"]["estimate"] == 3500.0, "of 1, 3, 4 s and a failure"
    (row,) = summary_rows(found)
    jct = row.figures["time.jct"]
    assert (jct.median, jct.known, jct.failed) == (3500.0, [1000.0, 3000.0, 4000.0], 1)
    assert "3/4" in render([row])
    assert "1 failed" in render([row])
    assert "3.50" in render([row])
    cell = on_page(found, 0, COLUMN)
    assert (cell.text, cell.below) == ("3.50", "1.00–4.00, 1 failed")
    changes = {change.question.name: change for change in compared(made({}), found).changes}
    assert changes["time"].verdict is not None
    assert [pair.difference for pair in changes["time"].verdict.differences] == [0.0, math.inf, 0.0, 0.0]


def test_failures_are_worse_than_any_where_higher_is_better() -> None:
    (row,) = summary_rows(made({0: "failed"}))
    test = row.figures["quality.test"]
    assert [test.median, *test.known] == pytest.approx([0.65, 0.8, 0.7, 0.6])


def test_where_failures_reach_the_median_it_is_called_failed() -> None:
    found = made({1: "failed", 2: "timeout"})
    (row,) = summary_rows(found)
    assert "failed\n" in render([row]) or "failed " in render([row])
    assert "2 failed" in render([row])
    assert on_page(found, 0, COLUMN).text == "failed"
    control = on_page(made({}), 0, COLUMN)
    assert (control.text, control.below) == ("2.50", "1.00–4.00")


@pytest.mark.parametrize(("failed", "shown"), [([], "1.25"), ([1], "1.75"), ([1, 2], MISSING)])
def test_what_is_added_to_a_job_counts_failures_as_what_is_added_to_a_trial(failed: list[int], shown: str) -> None:
    def draw(seed: int) -> dict[str, float]:
        return dict.fromkeys((*PER_JOB, PER_TRIAL, PER_REPORT, REPORTS), 100.0 * (seed + 1))

    (group,) = answers(results([Entry("optuna", draw, status=dict.fromkeys(failed, "failed"))], seeds=range(4))).groups
    found = added(group, None, Longest(trial=1.0, job=1.0), 0.95)
    assert _added([found.own_per_job]) == shown
    assert (found.per_trial is None) == (found.own_per_job is None) == (not found.lengths)
    assert all(math.isfinite(length.high) for length in found.lengths), "a run that failed tells no length"
