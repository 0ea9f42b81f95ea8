"""The `constant` meter: a power that somebody stated, whatever the host does; an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuneoff import clock
from tuneoff.power.meter import MeterDescription
from tuneoff.power.options import check_names, number
from tuneoff.samples.schema import PowerSample

DOMAIN = "node"


class ConstantMeter:
    """Option `watts`: of the whole node, a number above 0."""

    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        check_names("constant", options, ("watts",))
        self._watts = number("constant", options, "watts", least=0.001)
        self.idle_watts: Mapping[str, float] = {DOMAIN: self._watts}  # it does not depend on what runs
        source = f"constant: {self._watts:g} W, as stated"
        self.description = MeterDescription(kind="estimated", source=source, domains=(DOMAIN,))

    def read(self) -> Sequence[PowerSample]:
        """Return the stated power, now."""
        return (PowerSample(t=clock.monotonic_ns(), domain=DOMAIN, watts=self._watts),)

    def close(self) -> None:
        """Do nothing: nothing was started."""
