"""`tuneoff explain`: what a name in the results means, all names of a kind, or what a plugin implements, from the code itself."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import get_args

from tuneoff.base.output import columns, one_line, write, write_json
from tuneoff.base.suggest import nearest
from tuneoff.cli.interface import field_comments, interface

NAME = "explain"
HELP = "say what a metric, flag, verdict, event, field, column or check means; or print what a plugin implements"
EXAMPLE = "tuneoff explain disturbed JCT 'not decided'"
Entry = tuple[str, str, str]  # name, what it is (unit, type, fields), meaning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    topics = f"{', '.join(TOPICS)}; or {', '.join(INTERFACES)} for what a plugin implements (Markdown)"
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"any names, or one of {topics}; default: list these")
    parser.add_argument("--json", action="store_true", help="write JSON: a list of objects with topic, name, detail, text")


def execute(arguments: argparse.Namespace) -> int:
    from tuneoff.judge.meanings import WORDS

    words = " ".join(arguments.names)
    names = [words] if words in WORDS else list(dict.fromkeys(arguments.names))  # "not decided" needs no quotes
    if names and set(names) <= set(INTERFACES):
        write("\n\n".join(interface(*INTERFACES[name]) for name in names))
        return 0
    found = [entry for name in names for entry in _explained(name)] if names else list(_overview())
    if arguments.json:
        write_json([dict(zip(("topic", "name", "detail", "text"), entry, strict=True)) for entry in found])
    else:
        rows = [(topic, name, one_line(f"{text} ({detail})" if detail else text).lstrip()) for topic, name, detail, text in found]
        write(columns(("kind", "name", "meaning"), rows))
    return 0


def _overview() -> Iterator[tuple[str, str, str, str]]:
    for topic, entries in TOPICS.items():
        count = sum(1 for _ in entries())
        yield topic, f"{count} names", "", one_line(entries.__doc__ or "")


def _explained(name: str) -> list[tuple[str, str, str, str]]:
    """Return the entries of a topic, or those that have this name.

    Raises:
        ExperimentError: there is none; the nearest name is in the text.
    """
    from tuneoff.errors import ExperimentError

    topics = {name: TOPICS[name]} if name in TOPICS else TOPICS
    every = [(topic, *entry) for topic, entries in topics.items() for entry in entries()]
    found = every if name in TOPICS else [entry for entry in every if _is_of(name, entry[0], entry[1])]
    if not found:
        known = (*TOPICS, *INTERFACES, *(entry[1] for entry in every))
        raise ExperimentError(f"nothing is named {name!r}{nearest(name, known)}; kinds of names: {', '.join(TOPICS)}")
    return found


def _is_of(name: str, topic: str, entry: str) -> bool:
    from tuneoff.experiment.metric_names import general_name, metric

    if topic == "metrics":
        return entry == general_name(name) or name == metric(entry).heading
    return entry == name or (topic in ("columns", "record") and entry.rpartition(".")[2] == name)


def metrics() -> Iterator[Entry]:
    """Metrics of `run.json`; N stands for a slot, NAME for a score or a stage."""
    from tuneoff.experiment.metric_catalogue import METRICS

    directions = {"lower": "lower is better", "higher": "higher is better", "objective": "better as the objective is"}
    for one in METRICS.values():
        yield one.name, f"{one.unit or 'its score'}; {directions[one.better]}", one.title


def flags() -> Iterator[Entry]:
    """What a reader of a run must know."""
    from tuneoff.record.flag_meanings import FLAGS, weight

    yield from ((name, weight(name), text) for name, text in FLAGS.items())


def words() -> Iterator[Entry]:
    """Verdicts of pairs, statuses of runs, and what stands beside them."""
    from tuneoff.judge.meanings import WORDS

    yield from ((name, "", text) for name, text in WORDS.items())


def events() -> Iterator[Entry]:
    """Types of event lines, with their fields."""
    from tuneoff.record.events import schema

    for kind in get_args(schema.AnyEvent):
        own = [name for name in kind.__struct_fields__ if name not in schema.Event.__struct_fields__]
        yield str(kind.__struct_config__.tag), ", ".join(own), inspect.getdoc(kind) or ""


def record() -> Iterator[Entry]:
    """Fields of `run.json`, with their types."""
    from tuneoff.record import run_record

    for part in vars(run_record).values():
        if not inspect.isclass(part) or part.__module__ != run_record.__name__:
            continue
        text = one_line((inspect.getdoc(part) or "").partition("\n\n")[0])
        yield part.__name__, "", text
        comments = field_comments(part)
        for name, kind in inspect.get_annotations(part).items():
            yield f"{part.__name__}.{name}", str(kind), comments.get(name, "")


def record_columns() -> Iterator[Entry]:
    """Columns of the tables of `tuneoff export` and `tuneoff.load`."""
    from tuneoff.tell.frames.columns import RUN_KEYS, TABLES, Columns

    parts: Mapping[str, Columns] = {"*": RUN_KEYS, **TABLES}
    for table, own in parts.items():
        for name, column in own.items():
            if table == "*" or name not in RUN_KEYS:
                missing = "" if column.always else ", may be missing"
                yield f"{table}.{name}", ", ".join(filter(None, (column.unit, column.dtype))) + missing, column.text


def checks() -> Iterator[Entry]:
    """Checks of `tuneoff check`, with what to do where one fails."""
    from tuneoff.trust.check.checks import CHECKS

    yield from ((check.id, check.way_out, check.reason) for check in CHECKS)


TOPICS: Mapping[str, Callable[[], Iterator[Entry]]] = {
    "metrics": metrics,
    "flags": flags,
    "words": words,
    "events": events,
    "record": record,
    "columns": record_columns,
    "checks": checks,
}
INTERFACES: Mapping[str, tuple[str, ...]] = {  # the modules that authors of such a plugin import
    "adapter": ("tuneoff.ask_tell", "tuneoff.adapter", "tuneoff.capabilities", "tuneoff.adapter_parts"),
    "workload": ("tuneoff.workload",),
    "meter": ("tuneoff.meter",),
}
