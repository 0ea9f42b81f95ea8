"""Hold a run to what its plan says of it: its platform, the analysis that was frozen before it, what it is charged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.experiment.accounting.declared import FILE_NAME as ACCOUNTING
from tuneoff.experiment.accounting.declared import Accounting
from tuneoff.experiment.accounting.text import to_json
from tuneoff.measure.derived import Derived
from tuneoff.trust.verify.problem import VerifiedExecution
from tuneoff.trust.verify.record_differences import differences, show


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanExpectation:
    """What the plan says of a run."""

    emulated: bool = False
    analysis_digest: str | None = None
    accounting: Accounting | None = None


def check_charge(derived: Derived, expected: PlanExpectation | None, outcome: VerifiedExecution) -> None:
    """Hold what the run was charged to what its plan says; one that was killed at its begin may have no such file."""
    is_there = derived.record.status == "done" or any(one.name == ACCOUNTING for one in derived.record.sealed)
    if expected is None or expected.accounting is None or not is_there:
        return
    for name in ("intensity", "prices"):
        own, planned = to_json(getattr(derived.evidence.accounting, name)), to_json(getattr(expected.accounting, name))
        for difference in differences(own, planned, name):
            text = f"{difference.path} is {show(difference.stored)}, the plan has {show(difference.recomputed)}"
            outcome.add("plan", ACCOUNTING, text, difference.stored, difference.recomputed)


def check_frozen(environment: Mapping[str, Any], expected: PlanExpectation | None, outcome: VerifiedExecution) -> None:
    """Hold the run to the analysis that was frozen before it."""
    stored = environment.get("analysis_digest")
    if expected is None or expected.analysis_digest is None:
        return
    if stored is None:
        outcome.notes.append("its record has no analysis_digest: it was derived after its command was killed")
    elif stored != expected.analysis_digest:
        text = f"stored {str(stored)[:12]}, the plan has {expected.analysis_digest[:12]}"
        outcome.add("plan", "environment.analysis_digest", text, stored, expected.analysis_digest)
