"""What an experiment file asks for under `power:`; the same for every run of a matrix, and not in a run's id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

AUTO = "auto"
NO_METER = "none"  # nothing is metered: the use of the host and of its processes is sampled alone


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSettings:
    """The meter (`auto`: the best that the host has), its options, how often it is read, and a second opinion beside it."""

    meter: str = AUTO
    options: Mapping[str, Any] = field(default_factory=dict)  # of the meter
    interval_seconds: float = 0.2
    second: str | None = None  # a meter that is read too; attribution does not use it

    @property
    def line(self) -> str:
        """One line for `tuneoff plan`: what is asked for; which meter there is, is found on the host of the run."""
        if self.meter == NO_METER:
            return "power: no meter, as asked for"
        meter = "auto, the best that the host has" if self.meter == AUTO else self.meter
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        second = f", {self.second} as a second opinion" if self.second else ""
        return f"power: meter {meter}{f' ({options})' if options else ''}, read every {self.interval_seconds:g} s{second}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)
