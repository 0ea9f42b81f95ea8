"""All checks, family by family, in the order of tables."""

from __future__ import annotations

from tuneoff.trust.check.checks import best, budget, ending, failures, records, refusal, seeds, space, steps, workers
from tuneoff.trust.check.evidence import AdapterCheck

_FAMILIES = (
    steps.CHECKS,
    steps.UNDEPLOY,
    records.CHECKS,
    budget.CHECKS,
    space.CHECKS,
    best.CHECKS,
    budget.STOPS,
    failures.CHECKS,
    seeds.CHECKS,
    workers.CHECKS,
    ending.CHECKS,
    refusal.CHECKS,
    best.TESTED,
)
CHECKS: tuple[AdapterCheck, ...] = tuple(check for family in _FAMILIES for check in family)
