"""The rules of early stopping, applied to one report after the other as Katib's collector (v0.19) does.

A rule with a start step is tested exactly once, at that report of its metric, and an objective's rule sees the best value so far,
not the value of that report: a trial that was good before, or that passes the test, is never stopped by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from katib_emulation.node.metric_lines import parse_float

Comparison = Literal["less", "greater", "equal"]


@dataclass(frozen=True, slots=True)
class StopRule:
    """Stop when `name` compares with `value` as said; `start_step` 0: at every report, n: at the n-th report alone."""

    name: str
    value: str
    comparison: str
    start_step: int = 0

    def is_met(self, value: float) -> bool:
        """Compare a metric's value with the rule's.

        Raises:
            CollectorError: the rule's value is no number.
        """
        bound = parse_float(self.value, f"rule metric {self.name}")
        return {"less": value < bound, "greater": value > bound, "equal": value == bound}.get(self.comparison, False)


class StopRules:
    """The rules of one trial that are not yet met; when none is left, the trial is stopped."""

    def __init__(self, rules: Sequence[StopRule], objective: str, maximize: bool) -> None:
        self._open = list(rules)
        self._objective = objective
        self._maximize = maximize
        self._best: float | None = None
        self._steps_left = {rule.name: rule.start_step for rule in rules if rule.start_step}

    @property
    def names(self) -> list[str]:
        """The metrics of the rules that are not yet met."""
        return list(dict.fromkeys(rule.name for rule in self._open))

    def report(self, name: str, value: float) -> bool:
        """Apply the rules to one report; return whether all rules are met, and the trial has to stop.

        Raises:
            CollectorError: a rule's value is no number.
        """
        for rule in [rule for rule in self._open if rule.name == name]:
            if self._applies(rule, value):
                self._open.remove(rule)
        return not self._open

    def _applies(self, rule: StopRule, value: float) -> bool:
        if rule.name == self._objective:
            better = max if self._maximize else min
            self._best = value = value if self._best is None else better(self._best, value)
        if rule.name in self._steps_left:
            self._steps_left[rule.name] -= 1
            if self._steps_left[rule.name] != 0:
                return False
        return rule.is_met(value)
