"""By which meter, carbon intensity and prices the runs of a results folder were charged, as their own files say it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.accounting.store import read_accounting
from tuneoff.experiment.accounting.text import carbon_line, prices_line
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import header_of
from tuneoff.record.samples.schema import Header
from tuneoff.record.store import RUNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """One line per meter with why no better one was taken, and per intensity and prices; more than one only if runs differ."""

    meters: tuple[str, ...] = ()
    accounting: tuple[str, ...] = ()


NO_CIRCUMSTANCES = Circumstances()


def circumstances(results: Path, records: Iterable[RunRecord]) -> Circumstances:
    """Return what the executions of a results folder were measured and charged by; a damaged file is a line of its own."""
    meters: dict[str, None] = {}
    accounting: dict[str, None] = {}
    for run in records:
        folder = results / RUNS / run.run_id / run.execution_id
        header = header_of(folder)
        if header is not None:
            meters.update(dict.fromkeys(_meter(header)))
        accounting.update(dict.fromkeys(_charges(folder)))
    return Circumstances(meters=tuple(meters), accounting=tuple(accounting))


def _meter(header: Header) -> list[str]:
    reason = f"; {header.reason}" if header.reason else ""
    if header.meter == "none":
        return [f"Meter: none{reason or '; the samples do not say why'}."]
    detail = f"; {header.detail}" if header.detail else ""
    lines = [f"Meter: {header.meter} ({header.kind}): {header.source}{detail}{reason}."]
    if header.idle_problem:
        problem = f"{header.idle_problem[0].upper()}{header.idle_problem[1:]}"
        lines.append(f"{problem}: it is too high, what is attributed to trials too low, and what rests on it estimated (~).")
    if header.second:
        lines.append(f"Second opinion: {header.second}; its figures are in the export, and in no other one.")
    return lines


def _charges(folder: Path) -> list[str]:
    try:
        accounting = read_accounting(folder)
    except ResultsError as error:
        return [f"{error}."]
    lines = (carbon_line(accounting), f"{prices_line(accounting)}{_billing(accounting.prices)}")
    return [f"{line[0].upper()}{line[1:]}." for line in lines]


def _billing(prices: Prices | None) -> str:
    """Return what makes short runs cost the same."""
    if prices is None or prices.premises == "own":
        return ""
    least, unit = prices.billing_minimum_seconds, prices.billing_granularity_seconds
    parts = [f"at least {least:g} s" if least else "", f"in steps of {unit:g} s" if unit else ""]
    return f"; billed {' and '.join(filter(None, parts))}" if any(parts) else ""
