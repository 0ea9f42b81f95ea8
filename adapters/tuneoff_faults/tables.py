"""The results as a table for a terminal, and as tables of a page in Markdown (what they mean: docs/faults.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuneoff.base.output import columns, markdown_table
from tuneoff.judge.fault_results import ADAPTER, CONTROL, NO_SUCH_PART, TITLES, WORST, FaultOutcome, FaultResult
from tuneoff_faults.faults import FAULTS
from tuneoff_faults.plain import FaultTools


def terminal(results: Sequence[FaultResult]) -> str:
    """Return one table per setting, with the reasons, and the verdict."""
    header = ("fault", "framework", "outcome (wasted)", "why")
    tables = {
        title: [
            (result.fault, result.adapter, _cell(result), result.reason)
            for result in _tried(results)
            if result.setting == setting
        ]
        for setting, title in TITLES.items()
    }
    return "\n".join([*(f"{title}:\n{columns(header, rows)}\n" for title, rows in tables.items() if rows), verdict(results)])


def verdict(results: Sequence[FaultResult]) -> str:
    """Return one line: whether anything hung or was wrong under the adapters' settings; first, whether the controls went well."""
    if failed := [f"{result.adapter} by {result.setting}" for result in failed_controls(results)]:
        text = f"without a fault it did not go well: {', '.join(failed)}"
        return f"NO VERDICT: {text}; free the machine, or raise timeouts.trials_seconds"
    if bad := [f"{result.adapter} under {result.fault}" for result in bad_ones(results)]:
        return f"NOT SAFE: through its adapter, hung or silently wrong: {', '.join(bad)}"
    if missed := [f"{result.adapter} by {result.setting} under {result.fault}" for result in results if result.is_missed]:
        return f"NO VERDICT: the fault could not be planted: {', '.join(missed)}"
    through = sum(result.setting == ADAPTER and result.outcome is not None for result in results)
    if not through:
        return "NO VERDICT: nothing was run through an adapter"
    return f"SAFE: of {through} runs through adapters none hung and none was silently wrong"


def bad_ones(results: Sequence[FaultResult]) -> list[FaultResult]:
    """Return what must not happen: through an adapter, hung or silently wrong."""
    return [result for result in results if result.setting == ADAPTER and result.outcome in WORST]


def failed_controls(results: Sequence[FaultResult]) -> list[FaultResult]:
    """Return the runs without a fault that did not come to their right result: nothing can be said of the others then."""
    return [result for result in results if result.fault == CONTROL and result.outcome not in (None, FaultOutcome.RECOVERED)]


def markdown(
    results: Sequence[FaultResult], tools: Mapping[str, FaultTools | None], about: Mapping[str, str], command: str
) -> str:
    """Return the tables of a page: on what all ran, by which plain programs, a table per setting, and the reason of each run.

    `tools`: of each adapter, by its label.
    """
    lines = [f"    {command}", "", *markdown_table(("", ""), sorted(about.items())), ""]
    programs = {label: tool for label, tool in tools.items() if tool is not None}
    if programs:
        defaults = [(label, tool.defaults) for label, tool in programs.items()]
        parts = [
            (label, ", ".join(f"`{part.fault}`: {part.text}" for part in tool.parts))
            for label, tool in programs.items()
            if tool.parts
        ]
        lines += [*markdown_table(("adapter", "its plain program"), defaults), ""]
        lines += markdown_table(("adapter", "its parts that are broken"), parts)
    for setting, title in TITLES.items():
        chosen = [result for result in results if result.setting == setting]
        if not chosen:
            continue
        labels = list(dict.fromkeys(result.adapter for result in chosen))
        cells = {(result.fault, result.adapter): _cell(result) for result in chosen}
        names = {result.fault for result in chosen}
        outcomes = [
            (f"`{fault.name}`: {fault.text}", *(cells.get((fault.name, label), "") for label in labels))
            for fault in FAULTS
            if fault.name in names
        ]
        lines += ["", f"## {title}", "", *markdown_table(("fault", *labels), outcomes)]
    rows = [
        (result.fault, result.setting, result.adapter, _cell(result), result.reason.replace("<", "&lt;"))
        for result in _tried(results)
    ]
    why = markdown_table(("fault", "by", "adapter", "outcome (wasted)", "why"), rows)
    return "\n".join([*lines, "", f"**{verdict(results)}.**", "", "## Why", "", *why, ""])


def _tried(results: Sequence[FaultResult]) -> list[FaultResult]:
    return [result for result in results if result.reason != NO_SUCH_PART]


def _cell(result: FaultResult) -> str:
    """Return the outcome with the wasted seconds, or why there is none."""
    if result.outcome is None:
        return "not struck" if result.is_missed else "–" if result.reason == NO_SUCH_PART else "not run"
    wasted = "no figure" if result.wasted_seconds is None else f"{result.wasted_seconds:.1f} s"
    return f"{result.outcome} ({wasted})"
