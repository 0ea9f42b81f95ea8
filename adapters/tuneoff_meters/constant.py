"""The `constant` meter: a power that somebody stated, whatever the host does; an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuneoff.base import clock
from tuneoff.meter import MeterDescription, PowerMeter, PowerSample, check_names, number

DOMAIN = "node"


class ConstantMeter(PowerMeter):
    """Option `watts`: of the whole node, a number above 0."""

    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        check_names("constant", options, ("watts",))
        self._watts = number("constant", options, "watts", least=0.001)
        self.idle_watts = {DOMAIN: self._watts}  # it does not depend on what runs
        source = f"constant: {self._watts:g} W, as stated"
        self.description = MeterDescription(kind="estimated", source=source, domains=(DOMAIN,))

    def read(self) -> Sequence[PowerSample]:
        """Return the stated power, now."""
        return (PowerSample(t=clock.monotonic_ns(), domain=DOMAIN, watts=self._watts),)
