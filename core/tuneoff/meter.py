"""The contract of a power meter: a plugin of the entry-point group `tuneoff.power_meters`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import msgspec

from tuneoff.base.targets import unknown_option
from tuneoff.errors import TuneoffError
from tuneoff.record.samples.schema import Coefficients as Coefficients
from tuneoff.record.samples.schema import MeterKind as MeterKind
from tuneoff.record.samples.schema import PowerSample as PowerSample


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


class PowerMeter:
    """One meter on this host: what an entry point of `tuneoff.power_meters` names derives from it.

    A counter has `read`; a meter that is asked once, after the run (a database such as Prometheus, a file), has `collect`.
    """

    description: MeterDescription
    options_type: ClassVar[type[Any] | None] = None  # a dataclass, whose annotations its options are held to
    is_inert: bool = False  # opening it starts nothing and asks nobody: `tuneoff plan` opens it to check its options
    idle_watts: Mapping[str, float] | None = None  # by domain, in W, where known beforehand: none is read then
    problems: Sequence[str] = ()  # what was strange in the window that was last collected (counters that fell), one line each

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Open the meter with its options.

        Raises:
            MeterError: it is not there (no counter, no device, no permission) or an option is wrong.
        """

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> Any:
        """Return the options as an `options_type`, without opening anything: `tuneoff plan` asks for it.

        Raises:
            OptionError: one is unknown, missing, of the wrong type, or out of its range.
        """
        if cls.options_type is None:
            return None
        meter = f"meter {cls.__name__.removesuffix('Meter').lower()}"
        if problem := unknown_option(meter, options, sorted(option.name for option in fields(cls.options_type))):
            raise OptionError(problem)
        try:
            return msgspec.convert(options, cls.options_type)
        except msgspec.ValidationError as error:
            rule, _, path = str(error).partition(" - at ")
            name = path.rpartition("$.")[2].rstrip("`")
            value = options.get(re.split(r"[.\[]", name)[0])
            where, got = (f"`{name}`: ", f", but got {value!r}") if path else ("", "")
            raise OptionError(f"{meter}: {where}{rule}{got}; correct power.options") from error

    @property
    def collects(self) -> bool:
        """Whether it has a `collect` of its own, which is called after the run, and `read` never."""
        return type(self).collect is not PowerMeter.collect

    def read(self) -> Sequence[PowerSample]:
        """Return what can be read now, fast (it is called several times a second); empty where there is nothing new.

        Raises:
            MeterError: it cannot be read any more (a counter vanished); the sampler notes it once and goes on.
        """
        return ()

    def gpu_shares(self) -> Iterable[tuple[str, int, float]]:
        """Return (domain, pid, share of the device's time lately, 0 to 1): by it a GPU's energy is attributed. After each `read`.

        Raises:
            MeterError: it cannot be known.
        """
        return ()

    def gpu_memory(self) -> Iterable[tuple[str, int, int]]:
        """Return (domain, pid, bytes of the device's memory) of each process that has some, as `gpu_shares`.

        Raises:
            MeterError: it cannot be known.
        """
        return ()

    def collect(self, start_wall_ns: int, end_wall_ns: int) -> Iterable[PowerSample]:
        """Return the samples of a window; their `t` is wall-clock time in ns, the sampler turns it into monotonic time.

        Raises:
            MeterError: the database cannot be reached or holds nothing of that time.
        """
        return ()

    def close(self) -> None:
        """End what it started. May be called twice."""
