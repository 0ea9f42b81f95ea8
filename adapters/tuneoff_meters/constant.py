"""The `constant` meter: a power that somebody stated, whatever the host does; an estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from tuneoff.base import clock
from tuneoff.meter import MeterDescription, PowerMeter, PowerSample

DOMAIN = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantOptions:
    """What the experiment file gives."""

    watts: Annotated[float, Meta(ge=0.001)]  # of the whole node


class ConstantMeter(PowerMeter):
    """The stated power at any time."""

    options_type = ConstantOptions
    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._watts: float = self.check_options(options).watts
        self.idle_watts = {DOMAIN: self._watts}  # it does not depend on what runs
        source = f"constant: {self._watts:g} W, as stated"
        self.description = MeterDescription(kind="estimated", source=source, domains=(DOMAIN,))

    def read(self) -> Sequence[PowerSample]:
        """Return the stated power, now."""
        return (PowerSample(t=clock.monotonic_ns(), domain=DOMAIN, watts=self._watts),)
