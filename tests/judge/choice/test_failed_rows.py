"""What is said of a framework whose runs failed: that they did and in what, and never that it is slower."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders.made_results import Entry, over_tasks, results, steady
from judge.choice.test_choose import QUESTIONS, chosen_of, runs
from tuneoff.base.format import MISSING
from tuneoff.judge.answers.answer import Answers, Outcome
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import lines, seen_text
from tuneoff.judge.choice.choice import Certainty, Choice
from tuneoff.judge.choice.choose import choose
from tuneoff.record.run_record import RunStatus
from tuneoff.tell.page.frameworks import ratio_cell
from tuneoff.tell.report.tables import table

START = "step deploy failed: Ray must start on this machine within 225 s, but it did not"
RATES = {"optuna": 4000, "ray-tune": 12_000, "syne-tune": 24_000}


def told(seeds: int, failed: int, names: Sequence[str] = tuple(RATES), reason: str = START) -> tuple[Choice, Answers]:
    """Return the choice and the answers where so many of Ray Tune's runs failed for a reason."""
    entries = [
        Entry(name, runs(RATES[name], 20, name), status=dict.fromkeys(range(failed if name == "ray-tune" else 0), "failed"))
        for name in names
    ]
    made = results(entries, range(seeds), questions=QUESTIONS, primary_metric="time.jct")
    records = [
        replace(
            record,
            reason=reason if record.status == "failed" else None,
            versions={"framework": record.run_spec().adapter.title().replace("-", " ")},
        )
        for record in made.records
    ]
    made = replace(made, records=tuple(records), standing={record.run_id: record for record in records})
    found = answers(made)
    return choose(made, found), found


@pytest.mark.parametrize(
    ("seeds", "first", "rest"),
    [
        (
            3,
            "So far Optuna with sampler random, though 3 seeds prove nothing: in each Optuna was faster than Syne Tune.",
            "A job took ",
        ),
        (10, "Use Optuna", "Shown at 95 % confidence with sampler random: Optuna was faster than Syne Tune."),
    ],
)
def test_a_framework_none_of_whose_runs_is_done_is_named_and_was_not_compared(seeds: int, first: str, rest: str) -> None:
    choice, _ = told(seeds, failed=seeds)
    assert choice.lines[0].startswith(first)
    failed = f" Ray Tune failed in {seeds} of {seeds} runs (deploy: the framework did not start): it was not compared."
    assert choice.lines[0].endswith(failed)
    assert any(line.startswith(rest) for line in choice.lines)
    assert [line for line in choice.lines if "Ray Tune" in line] == [choice.lines[0]]
    assert "Ray Tune" not in choice.lines[0].removesuffix(failed)
    assert not any("failed as long" in line for line in choice.lines)
    control, _ = told(seeds, failed=0)
    assert not any("failed" in line for line in control.lines)
    assert any("Ray Tune" in line for line in control.lines if "faster than" in line)


@pytest.mark.parametrize(("seeds", "failed"), [(2, 1), (10, 6)])
def test_one_of_which_some_runs_are_done_is_not_called_slower_by_its_failures(seeds: int, failed: int) -> None:
    choice, found = told(seeds, failed, reason="no trial completed: 4 of 4 failed: KeyError: 'x'")
    assert choice.lines[0].endswith(f" Ray Tune failed in {failed} of {seeds} runs (no trial completed).")
    sentences = [sentence for line in choice.lines for sentence in line.split(". ")]
    assert not any("Ray Tune" in sentence and ("faster" in sentence or "as long" in sentence) for sentence in sentences)
    assert not any("faster than ray-tune" in line for line in lines(found))


def test_where_failures_decide_a_verdict_the_claim_says_who_failed() -> None:
    _, found = told(20, failed=19)
    claims = [line for line in lines(found) if "which decides time" in line]
    assert any("ray-tune failed where optuna did not, which decides time (" in line for line in claims)


def test_with_one_framework_left_there_is_nothing_to_choose_from() -> None:
    choice, _ = told(10, failed=10, names=("optuna", "ray-tune"))
    assert choice.lines[0].startswith("Nothing to choose from: only Optuna was measured. Ray Tune failed in 10 of 10 runs (")
    assert choice.lines[0].endswith(": it was not compared.")
    assert choice.settings[0].certainty is Certainty.NOT_DECIDED


def test_with_none_left_the_reasons_are_told() -> None:
    choice, _ = told(3, failed=3, names=("ray-tune",))
    assert choice.lines[0].startswith("Nothing to choose from: no run of Ray Tune is done. Ray Tune failed")
    assert "deploy: the framework did not start" in choice.lines[0]


@pytest.mark.parametrize("seeds", [1, 3, 10])
def test_two_that_failed_have_no_ratio_to_each_other_and_none_to_who_did_not(seeds: int) -> None:
    """All runs of the pool and of Ray Tune failed: "1.00x" was told of the one against the other."""
    status: dict[int, RunStatus] = dict.fromkeys(range(seeds), "failed")
    entries = [
        Entry("serial", runs(3000, 2, "s"), status=status),
        Entry("optuna", runs(4000, 20, "o")),
        Entry("ray-tune", runs(12_000, 400, "r"), status=status),
        Entry("syne-tune", runs(24_000, 400, "y"), status=status),
    ]
    made = results(entries, range(seeds), questions=QUESTIONS, primary_metric="time.jct")
    found = answers(made)
    choice = choose(made, found)
    (setting,) = choice.settings
    assert all(row.first.ratios == {} for row in setting.rows)
    assert [line.split().count(MISSING) > 0 for line in table(choice, 120) if "ray-tune" in line] == [True]
    assert not any("1.00x" in line or "∞" in line for line in table(choice, 120))
    assert all(
        not column["ratios"] for row in choice_to_json(choice)["settings"][0]["rows"] for column in row["columns"].values()
    )
    both = [one for one in found.verdicts if {one.one, one.other} <= {"serial", "ray-tune", "syne-tune"}]
    assert both
    outcome = Outcome.UNDECIDED if seeds == 10 else Outcome.NOT_JUDGED
    assert all((one.interval, one.outcome) == (None, outcome) for one in both)
    assert {seen_text(one) for one in found.verdicts if any(one.failures)} <= {
        f"failed runs: {a} and {b}" for a in (0, seeds) for b in (0, seeds)
    }
    pages = [
        ratio_cell(row, row.first.scope.text, other.label) for row in setting.rows for other in setting.rows if row is not other
    ]
    assert {cell.text for cell in pages} == {MISSING}


@pytest.mark.parametrize(("failed", "names"), [(1, "optuna ray-tune syne-tune"), (1, "optuna ray-tune")])
def test_of_few_seeds_only_who_never_failed_is_called_faster(failed: int, names: str) -> None:
    choice, _ = told(3, failed, names=names.split())
    headline = (
        "So far Optuna with sampler random, though 3 seeds prove nothing: in each Optuna was faster than Syne Tune."
        if "syne" in names
        else "Not decided: only Optuna ran without a failure."
    )
    assert choice.lines[0] == f"{headline} Ray Tune failed in 1 of 3 runs (deploy: the framework did not start)."


def test_a_verdict_that_holds_without_the_failed_runs_is_told_without_a_ratio() -> None:
    """Of 20 seeds 2 failed: the 18 others show the same by themselves; of 10 seeds 1 failed: 9 are too few to show anything."""
    choice, found = told(20, failed=2)
    assert any("Optuna was faster" in line and "Ray Tune" in line for line in choice.lines)
    (claim,) = [line for line in lines(found) if "optuna is faster than ray-tune" in line]
    assert "2 runs of ray-tune failed" in claim
    assert not re.search(r"\dx", claim.partition("noise floor")[0])
    assert not any("as long with Ray Tune" in line for line in choice.lines)
    few, found = told(10, failed=1)
    assert not any("faster" in line and "Ray Tune" in line for line in few.lines[1:])
    assert any(
        "ray-tune failed where optuna did not, which decides time (1 run of ray-tune failed" in line for line in lines(found)
    )


def test_over_tasks_the_headline_says_in_which_a_framework_failed() -> None:
    status: dict[int, RunStatus] = {0: "failed"}
    entries = over_tasks(
        3,
        ("optuna", "ray-tune"),
        lambda name, task: steady(2000 if name == "ray-tune" else 1000, spread=0),
        lambda name, task: {"status": status} if (name, task) == ("ray-tune", 1) else {},
    )
    choice = chosen_of(entries, range(3))
    assert re.search(r"ray-tune failed in 1 of 9 runs of \S+ \(", choice.lines[0])
