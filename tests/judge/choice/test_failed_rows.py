"""What is said of a framework whose runs failed: that they did and in what, and never that it is slower."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders.made_results import Entry, results
from judge.choice.test_choose import QUESTIONS, runs
from tuneoff.judge.answers.answer import Answers
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.answers.phrases import lines
from tuneoff.judge.choice.choice import Certainty, Choice
from tuneoff.judge.choice.choose import choose

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
        (3, "In 3 of 3 seeds Optuna was faster than Syne Tune.", "A job took "),
        (10, "Use Optuna", "Shown at 95 % confidence with sampler random: Optuna was faster than Syne Tune."),
    ],
)
def test_a_framework_none_of_whose_runs_is_done_is_named_and_was_not_compared(seeds: int, first: str, rest: str) -> None:
    choice, _ = told(seeds, failed=seeds)
    assert choice.lines[0].startswith(first)
    failed = f"Ray Tune failed in {seeds} of {seeds} runs (deploy: the framework did not start): it was not compared."
    assert choice.lines[1] == failed
    assert any(line.startswith(rest) for line in choice.lines)
    others = [line for line in choice.lines if "Ray Tune" in line]
    assert others == [failed]
    assert not any("failed as long" in line for line in choice.lines)
    control, _ = told(seeds, failed=0)
    assert not any("failed" in line for line in control.lines)
    assert any("Ray Tune" in line for line in control.lines if "faster than" in line)


@pytest.mark.parametrize(("seeds", "failed"), [(2, 1), (10, 6)])
def test_one_of_which_some_runs_are_done_is_not_called_slower_by_its_failures(seeds: int, failed: int) -> None:
    choice, found = told(seeds, failed, reason="no trial completed: 4 of 4 failed: KeyError: 'x'")
    assert choice.lines[1] == f"Ray Tune failed in {failed} of {seeds} runs (no trial completed)."
    assert not any("Ray Tune" in line and ("faster" in line or "as long" in line) for line in choice.lines)
    assert not any("faster than ray-tune" in line for line in lines(found))


def test_where_failures_decide_a_verdict_the_claim_says_who_failed() -> None:
    _, found = told(20, failed=19)
    claims = [line for line in lines(found) if "which decides time" in line]
    assert any("ray-tune failed where optuna did not, which decides time (" in line for line in claims)


def test_with_one_framework_left_there_is_nothing_to_choose_from() -> None:
    choice, _ = told(10, failed=10, names=("optuna", "ray-tune"))
    assert choice.lines[0] == "Nothing to choose from: only Optuna was measured."
    assert choice.lines[1].endswith(": it was not compared.")
    assert choice.settings[0].certainty is Certainty.NOT_DECIDED


def test_with_none_left_the_reasons_are_told() -> None:
    choice, _ = told(3, failed=3, names=("ray-tune",))
    assert choice.lines[0] == "Nothing to choose from: no run of Ray Tune is done; tuneoff status says why."
    assert "deploy: the framework did not start" in choice.lines[1]
