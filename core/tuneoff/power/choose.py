"""Choose the power meter of this host: a given one, or the best that answers, and why no better one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneoff.power.meter import MeterDescription, MeterError, PowerMeter

AUTO = "auto"
_NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The opened meter of this host. Whoever called `choose` closes it, once all runs are over."""

    name: str  # of the meter, as in the registry; several read together: "rapl+nvml"
    meter: PowerMeter
    reason: str = ""  # one line: why no better meter was taken; "" for the best, and for one given by name
    second_name: str = ""
    second: PowerMeter | None = None  # a second opinion: its samples never enter the first one's energy
    second_problem: str = ""  # one line: why the second meter that was asked for cannot be used
    description: MeterDescription = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "description", self.meter.description)

    def close(self) -> None:
        """Close both meters; may be called twice."""
        self.meter.close()
        if self.second is not None:
            self.second.close()


def choose(
    name: str = AUTO,
    options: Mapping[str, Any] = _NO_OPTIONS,
    *,
    second: str = "",
    second_options: Mapping[str, Any] = _NO_OPTIONS,
) -> Chosen:
    """Open the meter of that name with its options; `auto` takes the best that this host has, and the model at worst.

    `name` and `second` are names of the registry, or "module:Class".

    Raises:
        MeterError: a meter given by name cannot be used, or there is no such meter. `auto` never fails, and a `second` that
            cannot be used is said in `second_problem`.
    """
    raise MeterError("not there yet")
