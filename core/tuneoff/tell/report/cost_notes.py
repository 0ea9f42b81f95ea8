"""The lines under a table of energy and cost: kinds, meter, intensity, prices, what is missing and why, what may be compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuneoff.base.format import ESTIMATED, MISSING, figure, listed, shown_unit
from tuneoff.errors import ResultsError
from tuneoff.experiment.accounting.declared import Prices, carbon_line, prices_line, read_accounting
from tuneoff.judge.summary_rows import SummaryRow, row_name
from tuneoff.record.metric_value import Kind
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import header_of
from tuneoff.record.samples.schema import Header
from tuneoff.record.store import RUNS

ORDER: tuple[Kind, ...] = ("measured", "derived", "declared", "estimated")
ENERGY = "energy.per_completed_trial_without_test"
MEANINGS = {
    "time.jct": "job completion time",
    ENERGY: "energy of the job, with start-up, idle slots and services, but without tuneoff's own test, per completed trial",
    "energy.per_completed_trial": "the same with the test",
    "energy.trial": "energy of a trial's own work",
    "energy.cpu_seconds": "CPU seconds of the job",
    "energy.reserved_core_seconds": "reserved core seconds of the job",
    "carbon.job": "greenhouse gases of the job as CO2",
    "cost.job": "cost of the job",
    "carbon.job_without_test": "CO2e without the test",
    "cost.job_without_test": "cost of the job without the test",
    "waste.default.time": "wasted time of trials (default policy)",
    "waste.default.energy": "their wasted energy",
    "waste.default.cost": "their wasted cost",
    "slots.idle_share": "share of the slots' time in which nothing ran on them",
    "energy.idle_share": "share of their energy in which nothing ran on them",
}
SAVED = ("pruning.saved_epochs", "pruning.saved_time", "pruning.saved_energy")


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


def cost_notes(rows: Sequence[SummaryRow], headings: Mapping[str, str], circumstances: Circumstances) -> list[str]:
    """Return what the table cannot hold; `headings`: of its columns by metric."""
    shown = [row for row in rows if row.same_as is None and row.runs_done]
    return [
        *_meaning(headings),
        *_kinds(shown, headings),
        *circumstances.meters,
        *circumstances.accounting,
        *_missing(shown, headings),
        *_mixed(shown),
        *_waste(shown),
    ]


def _meaning(headings: Mapping[str, str]) -> Iterator[str]:
    """Say what the abbreviated headings mean."""
    found = [f"{headings[metric]}: {text}" for metric, text in MEANINGS.items() if metric in headings]
    if found:
        yield f"{'; '.join(found)}."


def _kinds(rows: Sequence[SummaryRow], headings: Mapping[str, str]) -> Iterator[str]:
    found: dict[Kind, list[str]] = {kind: [] for kind in ORDER}
    for metric, heading in headings.items():
        kinds = {kind for row in rows if metric in row.figures for kind in row.figures[metric].kinds}
        for kind in kinds:
            found[kind].append(heading)
    parts = []
    for kind, names in found.items():
        mark = f" ({ESTIMATED})" if kind == "estimated" else ""
        parts += [f"{kind}{mark}: {', '.join(names)}"] if names else []
    if parts:
        yield f"Kinds: {'; '.join(parts)}."


def _missing(rows: Sequence[SummaryRow], headings: Mapping[str, str]) -> Iterator[str]:
    """Yield one line per reason: the columns, and the rows where not all of them lack the figure."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for metric, heading in headings.items():
        lacking: dict[str, list[SummaryRow]] = {}
        for row in rows:
            for reason in row.figures[metric].reasons if metric in row.figures else ():
                lacking.setdefault(reason, []).append(row)
        for reason, those in lacking.items():
            which = () if len(those) == len(rows) and _all_null(those, metric, reason) else tuple(_lacking(those, metric, reason))
            found.setdefault((reason, which), []).append(heading)
    for (reason, which), names in found.items():
        yield f"{MISSING} {', '.join(names)}{f' ({listed(which)})' if which else ''}: {reason}."


def _all_null(rows: Iterable[SummaryRow], metric: str, reason: str) -> bool:
    return all(row.figures[metric].reasons[reason] == row.runs_done for row in rows)


def _lacking(rows: Iterable[SummaryRow], metric: str, reason: str) -> Iterator[str]:
    for row in rows:
        count = row.figures[metric].reasons[reason]
        yield row_name(row) + (f", {count} of {row.runs_done} runs" if count < row.runs_done else "")


def _mixed(rows: Sequence[SummaryRow]) -> Iterator[str]:
    """Say where energies are of different kinds: between rows, and between the seeds of one row, whose median then mixes them."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        if _has(row, ENERGY):
            kinds.setdefault(" and ".join(sorted(row.figures[ENERGY].kinds)), []).append(row_name(row))
    if len({kind for row in rows if _has(row, ENERGY) for kind in row.figures[ENERGY].kinds}) > 1:
        texts = [f"{kind} ({listed(names)})" for kind, names in kinds.items()]
        yield f"Energies of different kinds are not to be compared or ranked: here they are {listed(texts)}."


def _waste(rows: Sequence[SummaryRow]) -> Iterator[str]:
    pruners = dict.fromkeys(row.pruner for row in rows)
    if len(pruners) > 1:
        yield (
            f"Waste is not ranked across pruners ({', '.join(pruners)}): without one there is no waste by the default policy; "
            "read it beside the total compute (CPU) and what pruning saved."
        )
    for row in rows:
        if row.pruner != "none" and any(_has(row, name) for name in SAVED):
            yield f"{row_name(row)}: pruning saved {', '.join(_saved(row))} (estimated, medians)."


def _saved(row: SummaryRow) -> Iterator[str]:
    for name in SAVED:
        found = row.figures.get(name)
        if found is not None and found.median is not None and math.isfinite(found.median):
            unit, factor = shown_unit(found.unit)
            what = "epochs" if found.unit == "count" else unit
            yield f"{ESTIMATED}{figure(found.median * factor)} {what}"


def _has(row: SummaryRow, metric: str) -> bool:
    return metric in row.figures and bool(row.figures[metric].numbers)
