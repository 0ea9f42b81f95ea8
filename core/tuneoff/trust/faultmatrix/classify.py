"""From what is true and what was seen to one of five classes, with a reason of one line. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneoff.judge.faults import Class
from tuneoff.trust.faultmatrix.seen import Claim, SeenRun
from tuneoff.trust.faultmatrix.truth import Truth, best_of

TOLERANCE = 1e-5  # relative: some frameworks keep values as text


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOutcome:
    """The class of a run and why."""

    kind: Class
    reason: str


def classify(truth: Truth, seen: SeenRun) -> FaultOutcome:
    """Return what became of a run.

    - hung until the limit: it had not ended at the limit;
    - run aborted: it ended with an error, or before it had run what it still could;
    - silently wrong: it ended well, and what it says is not true (`untruth`), and it says nothing of that;
    - trial lost: its answer is right for the trials that it completed, and at least one has no result;
    - recovered: every configuration has its right result, and the best one is named.
    """
    if not seen.ended:
        return FaultOutcome(kind=Class.HUNG, reason=f"its last line: {seen.words}" if seen.words else "it says nothing")
    if seen.failure is not None:
        return FaultOutcome(kind=Class.ABORTED, reason=seen.failure)
    wrong = untruth(truth, seen)
    if wrong is not None and not seen.notices:
        return FaultOutcome(kind=Class.WRONG, reason=wrong)
    if wrong is not None:
        return FaultOutcome(kind=Class.LOST, reason=f"it says so itself ({', '.join(seen.notices)}): {wrong}")
    without = {
        index: claims for index, claims in _by_index(seen).items() if not any(_has_result(truth, claim) for claim in claims)
    }
    skipped = [index for index, claims in without.items() if index != truth.faulty and claims[-1].state == "unfinished"]
    if skipped:
        reason = f"it ended as if all were well, but did not run configuration{_plural(skipped)} {_listed(skipped)}"
        return FaultOutcome(kind=Class.ABORTED, reason=reason)
    if without:
        return FaultOutcome(kind=Class.LOST, reason=_loss(truth, without))
    return FaultOutcome(kind=Class.RECOVERED, reason="every configuration has its right result")


def untruth(truth: Truth, seen: SeenRun) -> str | None:
    """Return the first thing that a run says and that is not true, or None."""
    missing = _without_claim(truth, seen)
    if missing:
        return f"it ended well, but says nothing of configuration{_plural(missing)} {_listed(missing)}"
    completed = [claim for claim in seen.claims if claim.state == "completed"]
    for claim in completed:
        problem = _false_value(truth, claim)
        if problem is not None:
            return problem
    return _false_best(truth, seen, {claim.index: claim.value for claim in completed if _is_finite(claim.value)})


def _without_claim(truth: Truth, seen: SeenRun) -> list[int]:
    named = {claim.index for claim in seen.claims}
    return [index for index in range(len(truth.values)) if index not in named]


def _false_value(truth: Truth, claim: Claim) -> str | None:
    """Say what is false about a trial that is called complete. What is not finite and is kept as such is no false value."""
    right = truth.result(claim.index)
    if right is None:
        if _is_finite(claim.value) and not any(_are_equal(claim.value, value) for value in truth.values[claim.index]):
            return f"the faulty trial counts as complete with {claim.value:g}, which it never reached"
        return None
    if claim.value is None or not _are_equal(claim.value, right):
        return f"configuration {claim.index} counts as complete with {claim.value}, but its result is {right:.6g}"
    return None


def _false_best(truth: Truth, seen: SeenRun, completed: Mapping[int, float | None]) -> str | None:
    """Say what is false about the best trial: it must be the best of those that have a right result and are called complete."""
    right = {index: value for index in completed if (value := truth.result(index)) is not None}
    expected = best_of(right, truth.objective)
    if seen.best is None:
        return "it names no best trial" if right else None
    index, value = seen.best
    if truth.result(index) is None:
        return f"the faulty trial is named best, with {value}"
    if index != expected:
        return f"configuration {index} is named best, but {expected} is"
    right_value = truth.result(index)
    if value is not None and right_value is not None and not _are_equal(value, right_value):
        return f"the best trial has {value}, but its result is {right_value:.6g}"
    return None


def _loss(truth: Truth, without: Mapping[int, Sequence[Claim]]) -> str:
    """Say what was lost, and what the run says of it."""
    claim = without.get(truth.faulty, next(iter(without.values())))[-1]
    what = "1 trial" if len(without) == 1 else f"{len(without)} trials"
    text = claim.text or claim.state
    if claim.state == "completed":
        text += f", with {claim.value}" + (" of an epoch before the fault" if _is_finite(claim.value) else "")
    return f"{what}: {text}"


def _by_index(seen: SeenRun) -> dict[int, list[Claim]]:
    found: dict[int, list[Claim]] = {}
    for claim in seen.claims:
        found.setdefault(claim.index, []).append(claim)
    return dict(sorted(found.items()))


def _has_result(truth: Truth, claim: Claim) -> bool:
    return claim.state == "completed" and _is_finite(claim.value) and truth.result(claim.index) is not None


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _are_equal(one: float | None, other: float) -> bool:
    return one is not None and math.isclose(one, other, rel_tol=TOLERANCE)


def _plural(indices: list[int]) -> str:
    return "s" if len(indices) > 1 else ""


def _listed(indices: list[int]) -> str:
    return ", ".join(map(str, indices))
