"""For `tuneoff faults`: the plain program of Katib, on its emulation, and its parts that can break."""

from __future__ import annotations

from tuneoff.trust.faultmatrix.tools import FaultTools, Part

TOOLS = FaultTools(
    plain="tuneoff_adapters.katib.plain",
    defaults="`KatibClient.tune` with the grid over the configurations and nothing else set: Jobs with `backoffLimit` 6, no "
    "limit of time, metrics by lines on standard output; `wait_for_experiment_condition` (600 s); the answer is "
    "`get_optimal_hyperparameters`. Started again, it waits for the same Experiment. All on the emulation, whose server "
    "stands for the API server and for Katib",
    parts=(Part(fault="head_killed", text="the emulated API server", process="katib_emulation"),),
)
