"""The lines under the table: the meaning of its figures, skips with reasons, runs that are not done, flags."""

from __future__ import annotations

from collections.abc import Sequence

from tuneoff.base.format import counted, listed, number
from tuneoff.judge.conditions import condition_lines
from tuneoff.judge.summary_rows import SummaryRow
from tuneoff.record.flag_meanings import marked

MEDIANS = "Medians over seeds, in which a failed run is worse than any; below them lowest–highest of the runs that are done."


def notes(rows: Sequence[SummaryRow]) -> list[str]:
    """Return what the table cannot hold."""
    lines = _emulated(rows)
    if any(row.runs_done > 1 or row.runs_failed for row in rows):
        lines.append(MEDIANS)
    if any(row.runs_done for row in rows):
        lines += [
            "JCT w/o test: JCT less the test of the best model, which is tuneoff's own fresh process, the same for all.",
            "Both also hold the collection of metrics: tuneoff's own work, without a column.",
        ]
    uncertainty = max((row.clock_uncertainty for row in rows), default=0.0)
    if uncertainty:
        lines.append(f"Clocks of the hosts agree within {number(uncertainty)} ms.")
    lines += condition_lines((row.label, row.conditions) for row in rows)
    lines += _same(rows)
    for row in rows:
        if row.same_as is None:
            lines += [f"{row_name(row)} {_seeds(skip.seeds)}: skipped: {skip.text}" for skip in row.skips]
        lines += [f"{row_name(row)} {_seeds(end.seeds)}: {end.text}" for end in row.not_done]
        if row.trials_cancelled:
            lines.append(f"{row_name(row)}: {counted(row.trials_cancelled, 'trial')} cancelled")
    return lines + _flags(rows)


def _emulated(rows: Sequence[SummaryRow]) -> list[str]:
    found = [row.label for row in rows if row.emulated]
    if not found:
        return []
    means = "a local stand-in for the platform; its figures are not the framework's, and are in no ranking or comparison"
    return [f"{listed(found)} {'is' if len(set(found)) == 1 else 'are'} emulated: {means}."]


def _same(rows: Sequence[SummaryRow]) -> list[str]:
    """Return one line per pair of samplers that are the same for some adapters."""
    pairs: dict[tuple[str, str], list[SummaryRow]] = {}
    for row in rows:
        if row.same_as is not None:
            pairs.setdefault((row.sampler, row.same_as), []).append(row)
    return [
        f"{sampler} is {same_as} for {listed(row.label for row in found)}: "
        f"{counted(sum(row.runs_planned for row in found), 'run')} not repeated"
        for (sampler, same_as), found in pairs.items()
    ]


def _flags(rows: Sequence[SummaryRow]) -> list[str]:
    executed = sum(row.runs_executed for row in rows)
    lines = []
    for mark in marked(name for row in rows for name in sorted(row.flags)):
        name = mark.removeprefix("! ")
        found = [row for row in rows if row.flags.get(name)]
        total = sum(row.flags[name] for row in found)
        frameworks = [_flagged(label, name, rows) for label in dict.fromkeys(row.label for row in found)]
        lines.append(f"{mark}: {total} of {counted(executed, 'run')}: {', '.join(frameworks)}")
    head = "Flags (serious: !; what one means: tuneoff explain NAME):"
    return [head, *(f"  {line}" for line in lines)] if lines else []


def _flagged(label: str, name: str, rows: Sequence[SummaryRow]) -> str:
    """Return an adapter with its runs of that flag, and its samplers where not all of them have it: `syne-tune tpe 3`."""
    own = [row for row in rows if row.label == label and row.runs_executed]
    found = [row for row in own if row.flags.get(name)]
    samplers = list(dict.fromkeys(row.sampler for row in found))
    which = f" {'/'.join(samplers)}" if set(samplers) != {row.sampler for row in own} else ""
    return f"{label}{which} {sum(row.flags[name] for row in found)}"


def row_name(row: SummaryRow) -> str:
    """Return what tells a row from the others, as lines below the table write it."""
    pruner = f" + {row.pruner}" if row.pruner != "none" else ""
    return f"{row.label} {row.sampler}{pruner}" + (f" {row.variant}" if row.variant else "")


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
