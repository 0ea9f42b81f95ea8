"""What counts of a Trial for its Experiment, worked out once for each version of the Trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from katib_emulation.conditions import has_condition
from katib_emulation.controllers.observation import is_available
from katib_emulation.objects import Key, Object
from katib_emulation.suggestions import objective_value

STATES = ("Killed", "Failed", "Succeeded", "EarlyStopped", "Running", "MetricsUnavailable")
"""The conditions of a Trial in the order in which they count: the first that is True; Pending if none is."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One Trial as its Experiment sees it."""

    trial: Object
    name: str
    state: str  # one of STATES, or Pending
    value: str | None  # the objective's, by its strategy; None: none yet
    is_unfinished: bool  # stopped early, and its observation is not there yet

    @classmethod
    def of(cls, trial: Object) -> Standing:
        """Return the standing of a Trial."""
        state = next((name for name in STATES if has_condition(trial, name)), "Pending")
        unfinished = has_condition(trial, "EarlyStopped") and not is_available(trial)
        return cls(trial, trial["metadata"]["name"], state, objective_value(trial), unfinished)


class Standings:
    """Keeps the standings of the Trials of each Experiment."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Standing]] = {}  # by Experiment, then by the Trial's uid

    def of(self, experiment: Key, trials: Sequence[Object]) -> list[Standing]:
        """Return the standings of all Trials of an Experiment, in their order."""
        known = self._known.get(experiment, {})
        fresh: dict[str, Standing] = {}
        for trial in trials:
            uid = trial["metadata"]["uid"]
            before = known.get(uid)
            fresh[uid] = before if before is not None and before.trial is trial else Standing.of(trial)
        self._known[experiment] = fresh
        return list(fresh.values())

    def forget(self, experiment: Key) -> None:
        """Let go of an Experiment."""
        self._known.pop(experiment, None)
