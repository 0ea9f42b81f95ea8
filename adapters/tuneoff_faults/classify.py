"""What is true, what was seen of a run, and its outcome by these: one of five, with a reason of one line. Pure functions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuneoff.base.identity import is_finite
from tuneoff.experiment.spec import ExperimentSpec, Objective
from tuneoff.judge.fault_results import FaultOutcome
from tuneoff.workload import new_workload
from tuneoff_faults.plain import SEEDS, Claim

TOLERANCE = 1e-5  # relative: some frameworks keep values as text


def classify(truth: Truth, seen: SeenRun) -> tuple[FaultOutcome, str]:
    """Return what became of a run, and why.

    - hung until the limit: it had not ended at the limit;
    - run aborted: it ended with an error, or before it had run what it still could;
    - silently wrong: it ended well, and what it says is not true (`untruth`), and it says nothing of that;
    - trial lost: its answer is right for the trials that it completed, and at least one has no result;
    - recovered: every configuration has its right result, and the best one is named.
    """
    if not seen.ended:
        return FaultOutcome.HUNG, f"its last line: {seen.words}" if seen.words else "it says nothing"
    if seen.failure is not None:
        return FaultOutcome.ABORTED, seen.failure
    wrong = untruth(truth, seen)
    if wrong is not None and not seen.notices:
        return FaultOutcome.WRONG, wrong
    if wrong is not None:
        return FaultOutcome.LOST, f"it says so itself ({', '.join(seen.notices)}): {wrong}"
    by_index: dict[int, list[Claim]] = defaultdict(list)
    for claim in sorted(seen.claims, key=lambda claim: claim.index):
        by_index[claim.index].append(claim)
    without = {
        index: claims
        for index, claims in by_index.items()
        if truth.result(index) is None or not any(claim.state == "completed" and is_finite(claim.value) for claim in claims)
    }
    skipped = [index for index, claims in without.items() if index != truth.faulty and claims[-1].state == "unfinished"]
    if skipped:
        return FaultOutcome.ABORTED, f"it ended as if all were well, but did not run {_configurations(skipped)}"
    if without:
        return FaultOutcome.LOST, _loss(truth, without)
    return FaultOutcome.RECOVERED, "every configuration has its right result"


def untruth(truth: Truth, seen: SeenRun) -> str | None:
    """Return the first thing that a run says and that is not true, or None."""
    missing = sorted(set(range(len(truth.values))) - {claim.index for claim in seen.claims})
    if missing:
        return f"it ended well, but does not mention {_configurations(missing)}"
    completed = [claim for claim in seen.claims if claim.state == "completed"]
    for claim in completed:
        due = truth.result(claim.index)
        if due is None:  # what is not finite and is kept as such is not a false value
            if is_finite(claim.value) and not any(_are_equal(claim.value, value) for value in truth.values[claim.index]):
                return f"the faulty trial counts as complete with {claim.value:g}, which it never reached"
        elif claim.value is None or not _are_equal(claim.value, due):
            return f"configuration {claim.index} counts as complete with {claim.value}, but its result is {due:.6g}"

    # The best trial must be the best of those that have a right result and are called complete.
    finite = [claim.index for claim in completed if is_finite(claim.value)]
    right = {index: value for index in finite if (value := truth.result(index)) is not None}
    if seen.best is None:
        return "it names no best trial" if right else None
    index, value = seen.best
    due = truth.result(index)
    if due is None:
        return f"the faulty trial is named best, with {value}"
    if index != (expected := best_of(right, truth.objective)):
        return f"configuration {index} is named best, but {expected} is"
    return (
        f"the best trial has {value}, but its result is {due:.6g}" if value is not None and not _are_equal(value, due) else None
    )


def _loss(truth: Truth, without: Mapping[int, Sequence[Claim]]) -> str:
    """Say what was lost, and what the run says of it."""
    claim = without.get(truth.faulty, next(iter(without.values())))[-1]
    trials = "1 trial" if len(without) == 1 else f"{len(without)} trials"
    text = claim.text or claim.state
    if claim.state == "completed":
        text += f", with {claim.value}" + (" of an epoch before the fault" if is_finite(claim.value) else "")
    return f"{trials}: {text}"


def _are_equal(value: float | None, other: float) -> bool:
    return value is not None and math.isclose(value, other, rel_tol=TOLERANCE)


def _configurations(indices: Sequence[int]) -> str:
    return f"configuration{'s' if len(indices) > 1 else ''} {', '.join(map(str, indices))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The values after each epoch by configuration, and which configuration meets the fault; the last value is its result."""

    values: tuple[tuple[float, ...], ...]
    objective: Objective
    faulty: int
    is_sound: bool  # the faulty configuration has a right result too

    def result(self, index: int) -> float | None:
        """Return the right result of a configuration, or None where it has none."""
        if index == self.faulty and not self.is_sound:
            return None
        return self.values[index][-1]


def clean_values(experiment: ExperimentSpec, options: Mapping[str, Any]) -> tuple[tuple[float, ...], ...]:
    """Return the metric after each epoch of each listed configuration, trained here with these options of the workload."""
    curves = []
    for configuration in experiment.configurations:
        workload = new_workload(experiment.workload.target, options)
        workload.load(configuration, SEEDS)
        values = []
        for epoch in range(1, experiment.budget.epochs_per_trial + 1):
            workload.train_epoch(epoch)
            values.append(float(workload.validate()[experiment.objective.metric]))
        curves.append(tuple(values))
    return tuple(curves)


def best_of(values: Mapping[int, float], objective: Objective) -> int | None:
    """Return the index with the best value; the first of equal ones."""
    best: int | None = None
    for index, value in values.items():
        if objective.is_better(value, than=None if best is None else values[best]):
            best = index
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRun:
    """How a run ended and what it says. `failure`: its words, where it did not end well; `best`: (configuration, value)."""

    ended: bool = True  # by itself, before the limit
    failure: str | None = None
    claims: tuple[Claim, ...] = ()
    best: tuple[int, float | None] | None = None
    notices: tuple[str, ...] = ()  # what it says itself of its answer, where that is not to be trusted
    words: str = ""  # where it went, for a run that did not end: its last line
    seconds: float = 0.0
