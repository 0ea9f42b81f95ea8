"""The results as a table for a terminal, as tables of a page in Markdown (what they mean: docs/faults.md), and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuneoff.base.output import columns, markdown_table, one_line
from tuneoff.judge.faults import FAULTS, NO_FAULT, TITLES, Class
from tuneoff.trust.faultmatrix.cell import SETTINGS
from tuneoff.trust.faultmatrix.matrix import CellResult

BAD = (Class.HUNG, Class.WRONG)


def cell_text(result: CellResult) -> str:
    """Return the class with the wasted seconds, or why the cell was not run."""
    if result.kind is None:
        if result.is_missed:
            return "not struck"
        return "–" if "no such part" in result.skipped else "not run"
    wasted = " (no figure)" if result.wasted_seconds is None else f" ({result.wasted_seconds:.1f} s)"
    return f"{result.kind.value}{wasted}"


def terminal(results: Sequence[CellResult]) -> str:
    """Return one table per setting, and the reasons."""
    parts = []
    for setting in SETTINGS:
        chosen = [result for result in results if result.cell.setting == setting]
        if not chosen:
            continue
        rows = [
            (result.cell.fault.name, result.cell.label, cell_text(result), one_line(_reason(result)))
            for result in chosen
            if "no such part" not in result.skipped
        ]
        parts.append(f"{TITLES[setting]}:\n{columns(('fault', 'framework', 'outcome (wasted)', 'why'), rows)}\n")
    return "\n".join([*parts, verdict(results)])


def verdict(results: Sequence[CellResult]) -> str:
    """Return one line: whether anything hung or was wrong under the adapters' settings; first, whether the controls went well."""
    failed = failed_controls(results)
    if failed:
        named = ", ".join(f"{result.cell.label} by {result.cell.setting}" for result in failed)
        return f"NO VERDICT: without a fault it did not go well: {named}; free the machine, or raise timeouts.trials_seconds"
    bad = bad_ones(results)
    if bad:
        named = ", ".join(f"{result.cell.label} under {result.cell.fault.name}" for result in bad)
        return f"NOT SAFE: through its adapter, hung or silently wrong: {named}"
    missed = missed_ones(results)
    if missed:
        named = ", ".join(f"{result.cell.label} by {result.cell.setting} under {result.cell.fault.name}" for result in missed)
        return f"NO VERDICT: the fault could not be planted: {named}"
    through = sum(result.cell.setting == "adapter" and result.kind is not None for result in results)
    if not through:
        return "NO VERDICT: nothing was run through an adapter"
    return f"SAFE: of {through} runs through adapters none hung and none was silently wrong"


def bad_ones(results: Sequence[CellResult]) -> list[CellResult]:
    """Return what must not happen: through an adapter, hung or silently wrong."""
    return [result for result in results if result.cell.setting == "adapter" and result.kind in BAD]


def missed_ones(results: Sequence[CellResult]) -> list[CellResult]:
    """Return the runs that were to be struck and were not: nothing was learned of them."""
    return [result for result in results if result.is_missed]


def failed_controls(results: Sequence[CellResult]) -> list[CellResult]:
    """Return the runs without a fault that did not come to their right result: nothing can be said of the others then."""
    return [result for result in results if result.cell.fault is NO_FAULT and result.kind not in (None, Class.RECOVERED)]


def to_json(result: CellResult) -> dict[str, Any]:
    """Return a cell as JSON values."""
    return {
        "adapter": result.cell.label,
        "setting": result.cell.setting,
        "fault": result.cell.fault.name,
        "outcome": None if result.kind is None else result.kind.value,
        "reason": one_line(_reason(result)),
        "seconds": None if result.seconds is None else round(result.seconds, 3),
        "wasted_seconds": None if result.wasted_seconds is None else round(result.wasted_seconds, 3),
    }


def markdown(results: Sequence[CellResult], about: Mapping[str, str], command: str) -> str:
    """Return the tables of a page: on what all ran, by which plain programs, a table per setting, and the reason of each cell."""
    lines = [f"    {command}", "", *markdown_table(("", ""), sorted(about.items())), "", *_defaults(results)]
    for setting in SETTINGS:
        chosen = [result for result in results if result.cell.setting == setting]
        if chosen:
            lines += ["", f"## {TITLES[setting]}", "", *_matrix(chosen)]
    lines += ["", f"**{verdict(results)}.**", "", "## Why", ""]
    named = [result for result in results if "no such part" not in result.skipped]
    rows = [
        (result.cell.fault.name, result.cell.setting, result.cell.label, cell_text(result), _reason(result).replace("<", "&lt;"))
        for result in named
    ]
    return "\n".join([*lines, *markdown_table(("fault", "by", "adapter", "outcome (wasted)", "why"), rows), ""])


def _matrix(results: Sequence[CellResult]) -> list[str]:
    labels = list(dict.fromkeys(result.cell.label for result in results))
    found = {(result.cell.fault.name, result.cell.label): cell_text(result) for result in results}
    names = {result.cell.fault.name for result in results}
    rows = [
        (f"`{fault.name}`: {fault.text}", *(found.get((fault.name, label), "") for label in labels))
        for fault in FAULTS
        if fault.name in names
    ]
    return markdown_table(("fault", *labels), rows)


def _defaults(results: Sequence[CellResult]) -> list[str]:
    """Return what each plain program leaves to its framework."""
    tools = {result.cell.label: result.cell.tools for result in results if result.cell.setting == "defaults"}
    rows = [(label, item.defaults) for label, item in tools.items() if item is not None]
    parts = [
        (label, ", ".join(f"`{part.fault}`: {part.text}" for part in item.parts))
        for label, item in tools.items()
        if item is not None and item.parts
    ]
    if not rows:
        return []
    return [
        *markdown_table(("adapter", "its plain program"), rows),
        "",
        *markdown_table(("adapter", "its parts that are broken"), parts),
    ]


def _reason(result: CellResult) -> str:
    return result.skipped if result.outcome is None else result.outcome.reason
