"""The `model` meter, an estimate for hosts without counters: watts per hardware thread, from a table by CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from tuneoff.base.targets import nearest
from tuneoff.measure.power.cpu_table import DEFAULT, TABLE, coefficients_of, default_ratio, entry, load_table, this_cpu
from tuneoff.meter import MeterDescription, OptionError, PowerMeter
from tuneoff.record.samples.schema import Coefficients

_SHOWN = 3  # names of the table in an error, besides the nearest
Text = Annotated[str, Meta(min_length=1)]
Amount = Annotated[float, Meta(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What the experiment file gives: an entry of the table in place of this host's CPU, or coefficients of your own."""

    cpu: Text | None = None
    cpuinfo: Text | None = None  # another file than /proc/cpuinfo
    joules_per_cpu_second: Amount | None = None
    watts_per_core: Amount | None = None
    low: tuple[Amount, Amount] | None = None  # bounds of both, in that order; None: the values themselves
    high: tuple[Amount, Amount] | None = None

    def __post_init__(self) -> None:
        dynamic, idle = self.joules_per_cpu_second, self.watts_per_core
        if all(value is None for value in (dynamic, idle, self.low, self.high)):
            return
        if dynamic is None or idle is None:
            raise ValueError("coefficients need both `joules_per_cpu_second` and `watts_per_core`")
        if self.cpu is not None or self.cpuinfo is not None:
            raise ValueError("takes either `cpu` or coefficients, but got both; remove one of them")
        values = (dynamic, idle)
        for bounded in zip(self.low or values, values, self.high or values, strict=True):
            if list(bounded) != sorted(bounded):
                raise ValueError(f"coefficients must hold low <= value <= high, but got {bounded}")


class ModelMeter(PowerMeter):
    """Reads nothing: energy is joules_per_cpu_second · CPU seconds + watts_per_core · reserved core seconds."""

    options_type = ModelOptions
    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        chosen: ModelOptions = self.check_options(options)
        dynamic, idle, note = chosen.joules_per_cpu_second, chosen.watts_per_core, ""
        if dynamic is not None and idle is not None:
            ratio, servers = default_ratio()
            coefficients = Coefficients(
                joules_per_cpu_second=dynamic,
                watts_per_core=idle,
                low=chosen.low or (dynamic, idle),
                high=chosen.high or (dynamic, idle),
                cpu="given",
                source="given in the experiment file",
                ratio=ratio,
                servers=servers,
            )
        elif chosen.cpu is not None:
            keys = (DEFAULT, *load_table().generations)
            if chosen.cpu not in keys:
                listing = f"{', '.join(keys[:_SHOWN])}, and {len(keys) - _SHOWN} more, the keys of `generations` in {TABLE}"
                raise OptionError(f"meter model: no CPU {chosen.cpu!r} in the table{nearest(chosen.cpu, keys)}; known: {listing}")
            coefficients, note = entry(chosen.cpu), "as asked for" if chosen.cpu == DEFAULT else ""
        else:
            coefficients, note = coefficients_of(this_cpu(Path(chosen.cpuinfo or "/proc/cpuinfo")))
        low, high = coefficients.low, coefficients.high
        about = (
            f"{coefficients.cpu}: {coefficients.joules_per_cpu_second:.3g} ({low[0]:.3g} to {high[0]:.3g}) J per CPU second, "
            f"{coefficients.watts_per_core:.3g} ({low[1]:.3g} to {high[1]:.3g}) W per core"
        )
        source = "as given" if dynamic is not None else f"of {'the default server' if note else coefficients.cpu}"
        self.description = MeterDescription(
            kind="estimated",
            source=f"watts per core {source}",
            detail="; ".join(filter(None, (about, note))),
            coefficients=coefficients,
        )
