"""For `tuneoff faults`: without a framework, a plain program is Python's own process pool; there is no part to break."""

from __future__ import annotations

from tuneoff.trust.faultmatrix.tools import FaultTools

TOOLS = FaultTools(
    plain="tuneoff_adapters.serial_plain",
    defaults="no framework: `map` of Python's `ProcessPoolExecutor`, and `max` over its results",
)
