"""All checks, family by family, in the order of tables."""

from __future__ import annotations

from tuneoff.base.findings import checks_of
from tuneoff.trust.check.checks import best, budget, ending, failures, records, refusal, seeds, space, steps, workers
from tuneoff.trust.check.evidence import AdapterCheck

_MODULES = (steps, records, budget, space, best, failures, seeds, workers, ending, refusal)
CHECKS: tuple[AdapterCheck, ...] = (
    *(check for module in _MODULES for check in checks_of(module)),
    *ending.LEFT,
    *refusal.OPTIONS,
)
