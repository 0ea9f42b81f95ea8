"""Adapters that resume wrongly, each in one way: the proof must catch each of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.adapter import Best
from tuneoff_adapters.serial import SerialAdapter


class Forgetful(SerialAdapter):
    """Trains finished trials again."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        finished = [(trial.trial_id, trial.configuration) for trial in self.context.finished]
        return itertools.chain(finished[:1], super().propose())


class Renaming(SerialAdapter):
    """Trains a finished configuration again under a new name, in place of one that is left."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        finished = self.context.finished
        for trial_id, configuration in super().propose():
            is_last = finished and trial_id == "t00009"
            yield trial_id, finished[0].configuration if is_last else configuration


class Dropping(SerialAdapter):
    """Never begins again what an interruption ended."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        dropped = self.context.history.first_attempts()
        return ((trial_id, configuration) for trial_id, configuration in super().propose() if trial_id not in dropped)


class Overspending(SerialAdapter):
    """Takes the trials that were begun again for new ones, beyond the budget."""

    def propose(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        extra = [("t00099", dict(self.context.finished[0].configuration, x=0.123))] if self.context.finished else []
        return itertools.chain(extra, super().propose())


class Shortsighted(SerialAdapter):
    """Names the worst of what it was told as its best trial."""

    def collect_results(self) -> Best | None:
        told = [trial for trial in self.context.finished if trial.value is not None]
        if not told:
            return super().collect_results()
        objective = self.context.spec.experiment.objective
        sign = 1 if objective.mode == "max" else -1
        worst = min(told, key=lambda trial: sign * (trial.value or 0.0))
        return Best(trial_id=worst.trial_id, configuration=worst.configuration, value=worst.value)
