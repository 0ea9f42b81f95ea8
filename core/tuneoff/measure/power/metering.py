"""How the runs of a matrix are sampled: the meter of this host from its opening to its end, and the idle baseline."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tuneoff import registry
from tuneoff.base import clock
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ExperimentError, PluginError, UnknownNameError
from tuneoff.experiment.power_settings import AUTO, NO_METER, PowerSettings
from tuneoff.measure.power.procfs import HostClock
from tuneoff.measure.power.reading import MeterReader, collected, mean_watts
from tuneoff.measure.power.select_meter import check_options, choose
from tuneoff.meter import MeterError, OptionError, PowerMeter
from tuneoff.record.samples.schema import PowerSample

if TYPE_CHECKING:
    from tuneoff.experiment.load import MatrixFile

SECONDS = 3.0
STOP_SECONDS = 1.0
POLL_SECONDS = 0.1
COLLECT_SECONDS = 60.0  # for a database to answer
WHILE = "while the idle power was read: "
IDLE_LIMIT = 0.05  # of all processors' time; with more of it in use the host was not idle
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the host's domains drew while nothing of ours ran, in W; nothing where no meter could tell."""

    idle_watts: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0  # how long it was read
    busy: str = ""  # one line, where the host was not idle
    broken: str = ""  # one line, where the meter did not give what is needed
    problems: tuple[str, ...] = ()  # one line each on what else was strange

    @property
    def busy_line(self) -> str:
        """What it means that the host was not idle; "" where it was."""
        return f"{self.busy}: it is too high, and what is attributed to trials too low" if self.busy else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerPlan:
    """What `supervise` needs to sample a run. Without a meter, the use of the host and of its processes is sampled alone."""

    name: str = NO_METER  # of the meter, as in the registry; several read together: "rapl+nvml"
    meter: PowerMeter | None = None
    reason: str = "no power meter was chosen"  # why there is none, or no better one
    baseline: Baseline = field(default_factory=Baseline)
    interval_seconds: float = PowerSettings().interval_seconds
    lock: threading.Lock = field(default_factory=threading.Lock)  # of the meter: a read that hangs keeps it

    @property
    def problems(self) -> tuple[str, ...]:
        """One line each on what a reader of any run's energy must know."""
        baseline_problems = (*self.baseline.problems, self.baseline.broken, self.baseline.busy_line)
        return tuple(dict.fromkeys(problem for problem in baseline_problems if problem))

    def line(self) -> str:
        """Return one line for the user: which meter was found, its kind, and why no better one."""
        if self.meter is None:
            return f"power: no meter ({self.reason})"
        about = self.meter.description
        text = f"power: {self.name} ({about.kind}: {about.source})"
        return text + (f"; no better one: {self.reason}" if self.reason else "")

    def close(self) -> None:
        """Close the meter, unless it hangs: closing it might hang too. What goes wrong is one line: the runs are done."""
        if self.meter is not None and not self.lock.locked():
            try:
                self.meter.close()
            except Exception as error:  # another's code may fail in any way
                problem = " ".join(f"{type(error).__name__}: {error}".split())
                log.warning("the power meter %s fails when it is closed: %s; tell its author", self.name, problem)


NO_POWER = PowerPlan()


def open_power(settings: PowerSettings) -> PowerPlan:
    """Open the meter that an experiment file asks for; the baseline is not taken yet.

    Raises:
        ExperimentError: a meter that the file names cannot be used, or an option is wrong.
    """
    if settings.meter == NO_METER:
        return PowerPlan(reason="none was asked for", interval_seconds=settings.interval_seconds)
    try:
        name, meter, reason = choose(settings.meter, settings.placed_options)
    except MeterError as error:
        raise ExperimentError(refusal(settings, error)) from error
    return PowerPlan(name=name, meter=meter, reason=reason, interval_seconds=settings.interval_seconds)


def refusal(settings: PowerSettings, error: MeterError) -> str:
    """Return the line that tells which key of `power` cannot be kept, and why."""
    if isinstance(error, OptionError):
        return f"power.options: {error}"
    return f"power.meter {settings.meter!r} cannot be used: {error}"


class HostPower:
    """The opened meter of this host; whoever made it closes it, once all runs are over."""

    def __init__(self, settings: PowerSettings) -> None:
        """Open the meter.

        Raises:
            ExperimentError: a meter that the file names cannot be used, or an option is wrong.
        """
        self._settings = settings
        self.plan = open_power(settings)

    def prepare(self, interrupt: threading.Event, tell: Callable[[str], None]) -> PowerPlan:
        """Read the idle power and return the plan of all runs. `tell` gets one line where it is wrong, or not known.

        Raises:
            ExperimentError: a meter that was given by name breaks.
        """
        self.plan = with_baseline(self.plan, interrupt)
        baseline = self.plan.baseline
        if baseline.broken and self._settings.meter != AUTO:
            raise ExperimentError(refusal(self._settings, MeterError(baseline.broken)))
        if line := baseline.broken or baseline.busy_line:
            tell(f"power: {line}")
        return self.plan

    def close(self) -> None:
        """Close the meter."""
        self.plan.close()


def check_meters(file: MatrixFile) -> None:
    """Refuse a meter that nobody installed, and wrong options; whether it can be read is found on the host of the run."""
    name = file.power.meter
    if name not in (AUTO, NO_METER):
        try:
            registry.find("power_meter", name)
        except UnknownNameError as error:
            meters = {AUTO, NO_METER, *(plugin.name for plugin in registry.scan("power_meter"))}
            text = f"{unknown_name('power meter', name, meters)}; or give it as module:Class"
            raise UnknownNameError(f"{file.path}: power.meter: {text}") from error
        except ExperimentError as error:
            raise type(error)(f"{file.path}: power.meter: {error}") from error
    if name != NO_METER:
        try:
            check_options(name, file.power.placed_options)
        except MeterError as error:
            raise ExperimentError(f"{file.path}: {refusal(file.power, error)}") from error
        except (PluginError, UnknownNameError):  # it may be there on the host of the run
            return


def baseline_seconds(power: PowerPlan) -> float:
    """Return for how long the idle power is read; 0 where nothing is: a model has no domains, a replayed file its own or none.

    A database is asked for a time that has two of its samples for certain.
    """
    meter = power.meter
    if meter is None or not meter.description.domains or meter.idle_watts is not None:
        return 0.0
    return meter.description.longest_gap_seconds if meter.collects else SECONDS


def with_baseline(power: PowerPlan, interrupt: threading.Event, seconds: float | None = None) -> PowerPlan:
    """Return the plan with the idle power of its meter's domains; takes `baseline_seconds`, unless interrupted.

    A meter is broken that does not tell the power of all it reads. A database may be short of single domains of other nodes: it
    is only where it has none.
    """
    meter = power.meter
    if meter is not None and meter.idle_watts is not None:
        return replace(power, baseline=Baseline(idle_watts=dict(meter.idle_watts)))
    if meter is None or not baseline_seconds(power):
        return power
    problems: list[str] = []
    busy_before_ns, started_ns = _busy_ns(), clock.monotonic_ns()
    samples = _samples(power, meter, interrupt, baseline_seconds(power) if seconds is None else seconds, problems)
    elapsed_ns, busy_ns = clock.monotonic_ns() - started_ns, _busy_ns()
    idle = mean_watts(samples)
    busy, broken = "", ""
    if not interrupt.is_set():  # of an instant nothing can be told
        share = min(1.0, (busy_ns - busy_before_ns) / (elapsed_ns * (os.cpu_count() or 1)))  # ticks may be told late
        if share > IDLE_LIMIT:
            busy = f"the idle power was read while {100 * share:.0f} % of the processors' time was in use"
        lacking = _lacking(meter, idle)
        if lacking and not (meter.collects and idle):
            seconds_read = elapsed_ns / clock.NANOSECONDS
            broken = WHILE + (
                problems[0] if problems else f"it gave no power of {', '.join(lacking)} within {seconds_read:.0f} s"
            )
    baseline = Baseline(
        idle_watts=idle,
        seconds=elapsed_ns / clock.NANOSECONDS if idle else 0.0,
        busy=busy,
        broken=broken,
        problems=tuple(WHILE + problem for problem in problems),
    )
    return replace(power, baseline=baseline)


def _lacking(meter: PowerMeter, idle: Mapping[str, float]) -> list[str]:
    return [domain for domain in meter.description.domains if domain not in idle]


def _samples(
    power: PowerPlan, meter: PowerMeter, interrupt: threading.Event, seconds: float, problems: list[str]
) -> list[PowerSample]:
    if meter.collects:
        start = clock.anchor()
        interrupt.wait(seconds)
        within = 0.0 if interrupt.is_set() else COLLECT_SECONDS
        return list(collected(meter, power.name, power.lock, start, within_seconds=within, note=problems.append))
    samples: list[PowerSample] = []
    started_ns = clock.monotonic_ns()
    reader = MeterReader(
        power.name, meter, power.lock, interval_seconds=power.interval_seconds, take=samples.extend, note=problems.append
    )
    reader.start()
    interrupt.wait(seconds)
    latest = started_ns + meter.description.longest_gap_seconds * clock.NANOSECONDS
    while reader.has_answered and clock.monotonic_ns() < latest and not problems:
        if not _lacking(meter, mean_watts(_since(list(samples), started_ns))):
            break
        if interrupt.wait(POLL_SECONDS):  # of a meter that prints every few seconds, until it has
            break
    reader.ask_to_stop()
    reader.wait(STOP_SECONDS)
    return _since(list(samples), started_ns)


def _since(samples: list[PowerSample], started_ns: int) -> list[PowerSample]:
    """Leave out what a meter kept from before, when tuneoff was at work; not the last of it: from there the next one counts."""
    before = {sample.domain: sample for sample in samples if sample.t < started_ns}
    return [*before.values(), *(sample for sample in samples if sample.t >= started_ns)]


def _busy_ns() -> int:
    """Return the CPU time that all processors were in use; 0 where there is no /proc."""
    with contextlib.suppress(OSError), contextlib.closing(HostClock()) as host:
        return host.read().busy_ns
    return 0
