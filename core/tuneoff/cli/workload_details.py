"""All that one workload declares: options with their defaults, metrics, and the search space that a file need not give."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tuneoff.base.format import counted
from tuneoff.base.output import columns, one_line, printable
from tuneoff.errors import ExperimentError, PluginError

if TYPE_CHECKING:
    from tuneoff.workload import Workload

NOTE = "The dimensions are those of a file without a search space of its own."


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
