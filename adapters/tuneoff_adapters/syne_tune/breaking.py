"""For `tuneoff faults`: the plain program of Syne Tune, and its parts that can break."""

from __future__ import annotations

from tuneoff.trust.faultmatrix.tools import FaultTools

TOOLS = FaultTools(
    plain="tuneoff_adapters.syne_tune.plain",
    defaults="`Tuner.run` with `LocalBackend` and `RandomSearch` over the configurations, a `StoppingCriterion` on finished "
    "trials, and nothing else set: max_failures 1, a look at the trials every 5 s; the answer is `best_config`. Started "
    "again, it does what `Tuner.load` does. Its head is the program itself: see driver_killed",
)
