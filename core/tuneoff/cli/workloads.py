"""`tuneoff list workloads`: every workload with its metrics, or one with its options, metrics and default search space."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tuneoff.base.format import counted
from tuneoff.base.output import columns, one_line, printable
from tuneoff.errors import ExperimentError, PluginError

if TYPE_CHECKING:
    from tuneoff.registry import Listing
    from tuneoff.workload import Workload


NOTE = "The dimensions apply to a file without its own search space."


def listed(names: Sequence[str]) -> tuple[list[dict[str, Any]], str, list[str]]:
    """Return workloads as JSON values and as text, with names each with what it declares, and which of the named are broken."""
    from tuneoff.registry import list_workloads

    listings = list_workloads(names)
    lines = [_to_json(listing) for listing in listings]
    if not names:
        return lines, _table(lines), []
    whole = [(line, listing.loaded) for line, listing in zip(lines, listings, strict=True) if listing.loaded is not None]
    for line, workload in whole:
        line.update(declared(workload))
    broken = [listing.text for listing in listings if listing.loaded is None]
    return lines, "\n\n".join(details(*pair) for pair in whole), broken


def _table(lines: list[dict[str, Any]]) -> str:
    rows = [
        (
            line["name"],
            line["status"],
            f"{line['objective']} ({line['mode'] or 'by the file'})" if line["objective"] else "-",
            str(line["epochs"] or "-"),
            " ".join(line["metrics"]) or "-",
        )
        for line in lines
    ]
    notes = [line["text"] for line in lines if line["text"]]
    return "\n".join([columns(("name", "status", "objective", "epochs", "metrics"), rows), *([""] if notes else []), *notes])


def _to_json(listing: Listing[Workload]) -> dict[str, Any]:
    from tuneoff.base.commands import install_command
    from tuneoff.base.packages import missing_modules

    workload = listing.loaded
    missing = missing_modules(workload.preload) if workload else []
    text = listing.text
    if missing:
        text = f"workload {listing.plugin.name!r} needs {', '.join(missing)}; run: {install_command(*missing)}"
    return {
        "name": listing.plugin.name,
        "status": "broken" if workload is None else "missing" if missing else "ready",
        "text": text or None,
        "target": listing.plugin.target,
        "distribution": listing.plugin.distribution or None,
        "distribution_version": listing.plugin.version or None,
        "version": workload.version if workload else None,
        "objective": workload.default_metric if workload else None,
        "mode": workload.metrics.get(workload.default_metric) if workload else None,
        "epochs": workload.default_epochs if workload else None,
        "metrics": dict(workload.metrics) if workload else {},
        "training_algorithm": (workload.training_algorithm or None) if workload else None,
    }


def declared(workload: type[Workload]) -> dict[str, Any]:
    """Return, as JSON values, the options with their defaults (None: it does not declare them) and the default search space.

    Raises:
        PluginError: the workload cannot give its default search space.
    """
    from tuneoff.base.space import describe

    space: dict[str, str] = {}
    try:
        space = {name: describe(dimension) for name, dimension in workload.default_space()}
    except ExperimentError:  # it has none of its own: the file gives it
        pass
    except Exception as error:  # whatever a plugin raises
        raise PluginError(f"workload {workload.name!r} must give a default search space, but: {one_line(str(error))}") from error
    options = workload.default_options
    return {"options": None if options is None else dict(options), "default_space": space}


def details(line: Mapping[str, Any], workload: type[Workload]) -> str:
    """Return what a workload says of itself, and one row per option, metric and dimension; `line`: with what it declares."""
    algorithm = f", {line['training_algorithm']}" if line["training_algorithm"] not in (None, "none") else ""
    about = [f"{line['name']}: {line['status']}{algorithm}; {counted(line['epochs'], 'epoch')} unless the file says otherwise"]
    about += [line["text"]] if line["text"] else []
    words = inspect.cleandoc(workload.__doc__).splitlines() if workload.__doc__ else []
    rows = list(_rows(line))
    table = columns(("kind", "name", ""), rows)
    return "\n".join([*about, *([""] if words else []), *map(printable, words), "", table, "", NOTE])


def _rows(line: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, default in (line["options"] or {}).items():
        yield "option", name, f"default: {'none' if default is None else json.dumps(default, default=str)}"
    if line["options"] is None:
        yield "option", "?", "it does not declare them"
    for name, mode in line["metrics"].items():
        yield "metric", name, f"{mode}{', the objective unless the file names another' if name == line['objective'] else ''}"
    for name, text in line["default_space"].items():
        yield "dimension", name, text
