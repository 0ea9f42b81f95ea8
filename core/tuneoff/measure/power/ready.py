"""The meters of a matrix from their opening to their end; those that break before the first run are told apart from those that
break in one."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_settings import AUTO, PowerSettings
from tuneoff.measure.power.baseline import with_baseline
from tuneoff.measure.power.joint import JointMeter
from tuneoff.measure.power.metering import PowerPlan, open_power, refusal
from tuneoff.meter import MeterError


class HostPower:
    """The opened meters of this host; whoever made it closes it, once all runs are over."""

    def __init__(self, settings: PowerSettings) -> None:
        """Open the meters.

        Raises:
            ExperimentError: a meter that the file names cannot be used, or an option is wrong.
        """
        self._settings = settings
        self.plan = open_power(settings)

    def prepare(self, interrupt: threading.Event, tell: Callable[[str], None]) -> PowerPlan:
        """Read the idle power and return the plan of all runs; where `auto` took a meter that breaks, the next best is.

        `tell` gets one line where another meter was taken, and where the idle power is known to be wrong.

        Raises:
            ExperimentError: a meter that was given by name breaks.
        """
        broken: dict[str, str] = {}
        while True:
            self.plan = with_baseline(self.plan, interrupt)
            problem = self.plan.baseline.broken
            if not problem:
                break
            if self._settings.meter != AUTO:
                raise ExperimentError(refusal(self._settings, MeterError(problem)))
            for name in _at_fault(self.plan):
                broken[name] = f"{name} broke {problem}"
            self.plan.close()
            self.plan = open_power(self._settings, broken)
            tell(self.plan.line())
        if self.plan.baseline.busy:
            tell(f"power: {self.plan.baseline.busy_line}")
        return self.plan

    def close(self) -> None:
        """Close the meters."""
        self.plan.close()


def _at_fault(power: PowerPlan) -> set[str]:
    """Return which meters `auto` is not to take again: those parts that failed, else all that give samples."""
    chosen = power.chosen
    assert chosen is not None  # something was read
    if not isinstance(chosen.meter, JointMeter):
        return {chosen.name}
    parts, idle = chosen.meter.parts, power.baseline.idle_watts
    silent = {name for name, part in parts.items() if any(domain not in idle for domain in part.description.domains)}
    return chosen.meter.failed or silent or {name for name, part in parts.items() if part.description.domains}
