"""For `tuneoff faults`: the plain program of Ray Tune, and its parts that can break."""

from __future__ import annotations

from tuneoff.trust.faultmatrix.tools import FaultTools, Part

TOOLS = FaultTools(
    plain="tuneoff_adapters.ray_tune.plain",
    defaults="`Tuner.fit` with a `grid_search` over the configurations and nothing else set: `FailureConfig` with max_failures "
    "0, strict checking of metrics, its checkpoint every 10 s; the answer is `get_best_result`. Started again, it does what "
    "`Tuner.restore` does",
    parts=(
        Part(fault="head_killed", text="the gcs_server", process="gcs_server"),
        Part(fault="node_killed", text="the raylet", process="raylet/raylet"),
    ),
)
