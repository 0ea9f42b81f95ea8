"""All checks, family by family, in the order of tables and of their families' `CHECKS`."""

from __future__ import annotations

from tuneoff.trust.check.checks import (
    best,
    budget,
    ending,
    failures,
    records,
    refusal,
    seeds,
    space,
    steps,
    stops,
    tested,
    undeploy,
    workers,
)
from tuneoff.trust.check.model import Check, by_id

_FAMILIES = (steps, undeploy, records, budget, space, best, stops, failures, seeds, workers, ending, refusal, tested)
CHECKS: tuple[Check, ...] = tuple(by_id([check for family in _FAMILIES for check in family.CHECKS]).values())
