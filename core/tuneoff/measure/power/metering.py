"""How the runs of a matrix are sampled: the meters of this host, opened once, its idle baseline, and how often they are read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_settings import NO_METER, PowerSettings
from tuneoff.measure.power.select_meter import Chosen, SecondError, choose
from tuneoff.meter import MeterError, OptionError

log = logging.getLogger(__name__)
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the host's domains drew while nothing of ours ran, in W; nothing where no meter could tell."""

    idle_watts: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # how long it was read
    busy: str = ""  # one line, where the host was not idle
    broken: str = ""  # one line, where the meter did not give what is needed: it is not to be used
    problems: tuple[str, ...] = ()  # one line each on what else was strange

    @property
    def busy_line(self) -> str:
        """What it means that the host was not idle; "" where it was."""
        return f"{self.busy}: it is too high, and what is attributed to trials too low" if self.busy else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerPlan:
    """What `supervise` needs to sample a run. Without a meter, the use of the host and of its processes is sampled alone."""

    chosen: Chosen | None = None
    reason: str = "no power meter was chosen"  # why there is none, or no better one
    baseline: Baseline = field(default_factory=Baseline)
    interval_seconds: float = PowerSettings().interval_seconds
    locks: tuple[threading.Lock, threading.Lock] = field(  # of the meter, of the second one: a read that hangs keeps its lock
        default_factory=lambda: (threading.Lock(), threading.Lock())
    )

    @property
    def problems(self) -> tuple[str, ...]:
        """One line each on what a reader of any run's energy must know."""
        found = (*self.baseline.problems, self.baseline.broken, self.baseline.busy_line)
        return tuple(dict.fromkeys(problem for problem in found if problem))

    def line(self) -> str:
        """Return one line for the user: which meter was found, its kind, and why no better one."""
        if self.chosen is None:
            return f"power: no meter ({self.reason})"
        about = self.chosen.description
        text = f"power: {self.chosen.name} ({about.kind}: {about.source})"
        text += f", with {self.chosen.second_name} as a second opinion" if self.chosen.second is not None else ""
        return text + (f"; no better one: {self.reason}" if self.reason else "")

    def close(self) -> None:
        """Close the meters, but for one that hangs: closing it might hang too. What goes wrong is one line: the runs are done."""
        if self.chosen is not None and not any(lock.locked() for lock in self.locks):
            try:
                self.chosen.close()
            except Exception as error:  # another's code may fail in any way
                problem = " ".join(f"{type(error).__name__}: {error}".split())
                log.warning("the power meter %s fails when it is closed: %s; tell its author", self.chosen.name, problem)


NO_POWER = PowerPlan()


def open_power(settings: PowerSettings, broken: Mapping[str, str] = _NOTHING) -> PowerPlan:
    """Open the meters that an experiment file asks for; the baseline is not taken yet.

    `broken`: meters that `auto` is not to take, and why.

    Raises:
        ExperimentError: a meter that the file names cannot be used, or an option is wrong.
    """
    if settings.meter == NO_METER:
        return PowerPlan(reason="none was asked for", interval_seconds=settings.interval_seconds)
    try:
        chosen = choose(settings.meter, settings.placed_options, second=settings.second or "", broken=broken)
    except MeterError as error:
        raise ExperimentError(refusal(settings, error)) from error
    return PowerPlan(chosen=chosen, reason=chosen.reason, interval_seconds=settings.interval_seconds)


def refusal(settings: PowerSettings, error: MeterError) -> str:
    """Return the line that tells which key of `power` cannot be kept, and why."""
    if isinstance(error, OptionError):
        return f"power.options: {error}"
    key, name = ("second", settings.second) if isinstance(error, SecondError) else ("meter", settings.meter)
    return f"power.{key} {name!r} cannot be used: {error}"
