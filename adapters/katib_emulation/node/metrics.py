"""What Katib's file collector (v0.19) reads out of a metrics file by regular expressions, and its rules of early stopping.

A rule with a start step is tested exactly once, at that report of its metric, and an objective's rule sees the best value so far,
not the value of that report: a trial that was good before, or that passes the test, is never stopped by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from katib_emulation.observations import UNAVAILABLE, ZERO_TIME, Observation, moment

DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"


class CollectorError(Exception):
    """The collector ends with an error, and with it the pod: the text is the last line of its log."""


@dataclass(frozen=True, slots=True)
class MetricFormat:
    """How a metrics file is read. `names`: the objective first."""

    names: tuple[str, ...]
    filters: tuple[str, ...] = ()

    def observations(self, content: str) -> list[Observation]:
        """Return what is reported to the database: all values, or one `unavailable` where the objective is missing."""
        found = list(_text_lines(content.split("\n"), self.names, self._filters()))
        if any(observation.name == self.names[0] for observation in found):
            return found
        return [Observation(ZERO_TIME, self.names[0], UNAVAILABLE)]

    def values(self, line: str, names: Sequence[str]) -> list[tuple[str, float]]:
        """Return (name, value) for a line of the growing file, as the rules of early stopping see it: any name of a line that
        contains one of `names`.

        Raises:
            CollectorError: a value is no number (the default filter reads `nan` and `inf` as empty).
        """
        if not any(name in line for name in names):
            return []
        return [(name, parse_float(value, name)) for name, value in _matches(line, self._filters())]

    def _filters(self) -> list[re.Pattern[str]]:
        return [re.compile(text, re.ASCII) for text in self.filters or (DEFAULT_FILTER,)]


def parse_float(text: str, name: str) -> float:
    """Return the number that a text is.

    Raises:
        CollectorError: it is none.
    """
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise CollectorError(f"Unable to parse value {text} to float for metric {name}") from None


def _text_lines(lines: Sequence[str], names: Sequence[str], filters: Sequence[re.Pattern[str]]) -> Iterator[Observation]:
    for line in lines:
        if not any(name in line for name in names):
            continue
        first, blank, _ = line.partition(" ")
        time = first if blank and moment(first) is not None else ZERO_TIME
        for name, value in _matches(line, filters):
            if name in names:
                yield Observation(time, name, value)


def _matches(line: str, filters: Sequence[re.Pattern[str]]) -> Iterator[tuple[str, str]]:
    for pattern in filters:
        for match in pattern.finditer(line):
            yield (match[1] or "").strip(), (match[2] or "").strip()


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
