"""The contract of a power meter: a plugin of the entry-point group `tuneoff.power_meters`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tuneoff.errors import TuneoffError
from tuneoff.samples.schema import Coefficients, MeterKind, NodeSample, PowerSample


class MeterError(TuneoffError):
    """A meter cannot be used, or stopped answering: one line with the rule, the value and the way out."""


class OptionError(MeterError):
    """An option of a meter is wrong: no other meter is taken in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterDescription:
    """What a meter reads. `kind`: `measured` only from a counter or a power meter; `domains`: see `samples.schema.Header`."""

    kind: MeterKind
    source: str
    domains: tuple[str, ...] = ()
    detail: str = ""  # what is too long for `source`, which stands beside every figure: coefficients, how they were found
    coefficients: Coefficients | None = None  # of a model, which has no domains and reads nothing
    longest_gap_seconds: float = 10.0  # between samples; what lies in a longer gap is not covered


class PowerMeter(Protocol):
    """One meter on this host, opened; closed when the run ends. Made by a `MeterClass`."""

    @property
    def description(self) -> MeterDescription: ...

    def read(self) -> Sequence[PowerSample]:
        """Return what can be read now, fast (it is called several times a second); empty where there is nothing new.

        Raises:
            MeterError: it cannot be read any more (a counter vanished); the sampler notes it once and goes on.
        """

    def close(self) -> None:
        """End what it started. May be called twice."""


@runtime_checkable
class CollectingMeter(Protocol):
    """A meter that is asked once, after the run, for a window of wall-clock time (a database such as Prometheus)."""

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> Iterable[PowerSample]:
        """Return the samples of a window; their `t` is wall-clock time in ns, the sampler turns it into monotonic time.

        Raises:
            MeterError: the database cannot be reached or holds nothing of that time.
        """


@runtime_checkable
class ObservantMeter(Protocol):
    """A `CollectingMeter` that also says what was strange in the window that it was last asked for: counters that fell."""

    @property
    def problems(self) -> Sequence[str]:
        """One line each; the sampler notes them."""


@runtime_checkable
class NodeMeter(Protocol):
    """A `CollectingMeter` that also knows what whole nodes used; asked after `collect`, for the same window."""

    def collect_nodes(self, start_wall_ns: int, end_wall_ns: int) -> Iterable[NodeSample]:
        """Return the samples of a window, `t` as in `collect`.

        Raises:
            MeterError: it is not known; the energy is kept.
        """


@runtime_checkable
class GpuMeter(Protocol):
    """A meter that also tells which processes used a GPU: the key by which its energy is attributed."""

    def gpu_shares(self) -> Iterable[tuple[str, int, float]]:
        """Return (domain, pid, share of the device's time lately, 0 to 1); called after each `read`.

        Raises:
            MeterError: it cannot be told.
        """


@runtime_checkable
class KnownBaseline(Protocol):
    """A meter whose idle power is known beforehand, or known not to be known (a replayed file): none is read for it."""

    @property
    def idle_watts(self) -> Mapping[str, float]:
        """By domain, in W; empty where the file has none."""


class MeterClass(Protocol):
    """What the entry point names: opens a meter with its options, or says in one line why not.

    It may have `check_options(options)`, which refuses wrong options without opening anything: `tuneoff plan` then does. Where
    opening it starts nothing and asks nobody it may say `is_inert = True` instead.
    """

    def __call__(self, options: Mapping[str, Any]) -> PowerMeter:
        """Open the meter.

        Raises:
            MeterError: it is not there (no counter, no device, no permission) or an option is wrong.
        """
