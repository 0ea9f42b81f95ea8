"""The rules of early stopping on sequences of reports."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from katib_emulation.node.metrics import CollectorError, StopRule, StopRules


def stopped_at(rules: Sequence[StopRule], reports: Sequence[tuple[str, float]], maximize: bool = False) -> int | None:
    """Return the number of the report (from 1) at which the trial has to stop."""
    open_rules = StopRules(rules, "loss", maximize)
    return next((number for number, (name, value) in enumerate(reports, start=1) if open_rules.report(name, value)), None)


def of_loss(*values: float) -> list[tuple[str, float]]:
    return [("loss", value) for value in values]


WORSE_THAN_2_AT_3 = StopRule("loss", "2", "greater", 3)


def test_a_trial_that_is_worse_than_the_rule_at_the_start_step_is_stopped() -> None:
    assert stopped_at([WORSE_THAN_2_AT_3], of_loss(5, 4, 3, 2.5)) == 3


def test_a_trial_that_gets_worse_after_the_start_step_is_never_stopped() -> None:
    assert stopped_at([WORSE_THAN_2_AT_3], of_loss(5, 4, 1, 9, 9, 9)) is None


def test_a_trial_that_was_good_before_the_start_step_is_never_stopped() -> None:
    assert stopped_at([WORSE_THAN_2_AT_3], of_loss(1, 9, 9, 9)) is None


def test_before_the_start_step_nobody_is_stopped() -> None:
    assert stopped_at([WORSE_THAN_2_AT_3], of_loss(9, 9)) is None


def test_the_best_of_a_maximized_objective_is_its_greatest() -> None:
    rule = StopRule("loss", "0.5", "less", 2)
    assert stopped_at([rule], of_loss(0.1, 0.2), maximize=True) == 2
    assert stopped_at([rule], of_loss(0.9, 0.2), maximize=True) is None


def test_another_metric_is_compared_by_its_value_of_that_report() -> None:
    assert stopped_at([StopRule("accuracy", "0.5", "less", 2)], [("accuracy", 0.9), ("accuracy", 0.1)]) == 2


def test_a_rule_without_a_start_step_is_tested_at_every_report() -> None:
    assert stopped_at([StopRule("accuracy", "0.5", "equal")], [("accuracy", 0.1), ("loss", 0.5), ("accuracy", 0.5)]) == 3


def test_all_rules_have_to_be_met() -> None:
    rules = [WORSE_THAN_2_AT_3, StopRule("accuracy", "0.5", "less")]
    assert stopped_at(rules, of_loss(9, 9, 9)) is None
    assert stopped_at(rules, [*of_loss(9, 9, 9), ("accuracy", 0.4)]) == 4


def test_a_rule_whose_value_is_no_number_ends_the_collector() -> None:
    with pytest.raises(CollectorError, match="rule metric loss"):
        stopped_at([StopRule("loss", "", "less", 1)], of_loss(1))
