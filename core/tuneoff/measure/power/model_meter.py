"""The `model` meter, an estimate for hosts without counters: watts per hardware thread, from a table by CPU."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.targets import nearest
from tuneoff.measure.power.cpu_table import TABLE, default_ratio, load_table, named_entry, this_cpu, watts_for
from tuneoff.meter import MeterDescription, OptionError, PowerMeter, check_names, number, pair, text
from tuneoff.record.samples.schema import Coefficients

_OWN = ("joules_per_cpu_second", "watts_per_core")
OPTIONS = ("cpu", "cpuinfo", *_OWN, "low", "high")
_SHOWN = 3  # names of the table in an error, besides the nearest


class ModelMeter(PowerMeter):
    """Reads nothing: energy is joules_per_cpu_second · CPU seconds + watts_per_core · reserved core seconds.

    Options: `cpu` (an entry of the table, in place of this host's CPU), or coefficients of your own: `joules_per_cpu_second` and
    `watts_per_core`, with their bounds `low` and `high` (two numbers each, in that order; without them, the values themselves).
    `cpuinfo`: another file than /proc/cpuinfo.
    """

    is_inert = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        check_names("model", options, OPTIONS)
        is_given = any(name in options for name in (*_OWN, "low", "high"))
        coefficients, note = (_coefficients_of(options), "") if is_given else _from_table(options)
        entry = "the default server" if note else coefficients.cpu
        self.description = MeterDescription(
            kind="estimated",
            source="watts per core as given" if is_given else f"watts per core of {entry}",
            detail="; ".join(filter(None, (_described(coefficients), note))),
            coefficients=coefficients,
        )


def _described(coefficients: Coefficients) -> str:
    dynamic, idle = coefficients.joules_per_cpu_second, coefficients.watts_per_core
    low, high = coefficients.low, coefficients.high
    return (
        f"{coefficients.cpu}: {dynamic:.3g} ({low[0]:.3g} to {high[0]:.3g}) J per CPU second, "
        f"{idle:.3g} ({low[1]:.3g} to {high[1]:.3g}) W per core"
    )


def _coefficients_of(options: Mapping[str, Any]) -> Coefficients:
    if "cpu" in options or "cpuinfo" in options:
        raise OptionError("meter model takes either `cpu` or coefficients, but got both; remove one of them from power.options")
    dynamic, idle = (number("model", options, name) for name in _OWN)
    low, high = pair("model", options, "low", (dynamic, idle)), pair("model", options, "high", (dynamic, idle))
    if not (low[0] <= dynamic <= high[0] and low[1] <= idle <= high[1]):
        rule = "must hold low <= value <= high in both numbers"
        raise OptionError(f"meter model: coefficients {rule}, but got {low}, {(dynamic, idle)}, {high}; correct power.options")
    ratio, servers = default_ratio()
    return Coefficients(
        joules_per_cpu_second=dynamic,
        watts_per_core=idle,
        low=low,
        high=high,
        cpu="given",
        source="given in the experiment file",
        ratio=ratio,
        servers=servers,
    )


def _from_table(options: Mapping[str, Any]) -> tuple[Coefficients, str]:
    """Return the coefficients, and why they are the default, if they are."""
    table = load_table()
    if "cpu" in options:
        name = text("model", options, "cpu")
        watts = named_entry(name)
        if watts is None:
            keys = ("default", *table.generations)
            listing = f"{', '.join(keys[:_SHOWN])}, and {len(keys) - _SHOWN} more, the keys of `generations` in {TABLE}"
            raise OptionError(f"meter model: no CPU {name!r} in the table{nearest(name, keys)}; known: {listing}")
    else:
        watts = watts_for(this_cpu(Path(text("model", options, "cpuinfo", "/proc/cpuinfo"))))
    coefficients = Coefficients(
        joules_per_cpu_second=watts.dynamic,
        watts_per_core=watts.idle,
        low=watts.low,
        high=watts.high,
        cpu=watts.entry,
        source=f"{table.source}; as of {table.date}",
        ratio=watts.ratio,
        servers=watts.servers,
    )
    return coefficients, watts.why_default
