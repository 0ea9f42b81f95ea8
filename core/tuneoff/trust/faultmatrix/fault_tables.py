"""The results as a table for a terminal, as a page in Markdown, and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from tuneoff.base.output import columns, markdown_table, one_line
from tuneoff.judge.faults import FAULTS, NO_FAULT, TITLES, Class
from tuneoff.trust.faultmatrix.cell import SETTINGS
from tuneoff.trust.faultmatrix.matrix import MORE_SECONDS, CellResult

CLASSES: Mapping[Class, str] = {
    Class.RECOVERED: "every configuration has its right result, and the best one is named",
    Class.LOST: "the answer is right for the trials that were completed, and at least one has no result",
    Class.ABORTED: "the run ended with an error, or before it had run what it still could",
    Class.HUNG: "the run had not ended at the limit",
    Class.WRONG: "the run ended well, and what it says is not true: the best trial or its value, a trial that counts as complete "
    "with a value that is not its result, a trial of which it says nothing",
}
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


def markdown(results: Sequence[CellResult], about: Mapping[str, str], command: Sequence[str]) -> str:
    """Return the page: what was run, the classes, a table per setting, and a line per cell with its reason."""
    experiment = results[0].cell.spec.experiment
    faulty = results[0].cell.faulty
    lines = [
        "# Fault matrix",
        "",
        "What becomes of a run when something goes wrong: first as a user of the framework meets it who leaves everything to its "
        "defaults, then through tuneoff's adapter. This page is written by the command below; nothing on it is by hand.",
        "",
        f"    {shlex.join(command)}",
        "",
        *markdown_table(("", ""), sorted(about.items())),
        "",
        f"Each run has the same {len(experiment.configurations)} configurations of the workload `faulty` (three epochs each, "
        f"{experiment.workers.count} workers). The fault strikes one of them while its second epoch trains: number {faulty}, "
        "counted from 0, which is the best one. What is right is computed without any framework. All runs are real, each in a "
        f"process of its own with a limit: a plain program has twice the time of its control (the run without a fault) and "
        f"{MORE_SECONDS:g} s more, at most {experiment.timeouts.trials_seconds:g} s; a run through an adapter has the "
        "experiment's `timeouts`.",
        "",
        *markdown_table(("outcome", "meaning"), [(kind.value, text) for kind, text in CLASSES.items()]),
        "",
        "In parentheses the wasted seconds: how much longer it took than the same run without a fault; all of its time where no "
        "answer came of it that can be used. No figure: the control took longer, on a busier machine. "
        "– : the framework has no such part. Not struck: the fault could not be planted, so nothing was learned.",
        "",
        *_defaults(results),
    ]
    lines += [
        "",
        "Another adapter takes part in the second half as it is; in the first one, once its class names a `FaultTools` "
        "(of `tuneoff.adapter_parts`) in `fault_tools`: its plain program and its parts that can break.",
    ]
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
