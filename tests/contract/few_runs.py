"""Which checks the tests of this repository make of every adapter: those that need few runs. `tuneoff check` makes all."""

from __future__ import annotations

from tuneoff.capabilities import Capabilities
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.planned_runs import planned_runs, repetitions

ONE_OF_MANY = repetitions(2)[0]  # the one random run that many checks read
LEFT_OUT = {
    name
    for name in planned_runs(Capabilities(framework="none"))
    if name.startswith(("random-", "failed-", "wall-clock", "other-seed", "undeployed"))
    and name not in (ONE_OF_MANY, "failed-trial")
}
FEW_RUNS = tuple(check.id for check in CHECKS if not LEFT_OUT.intersection(check.reads))
