"""`tuneoff explain`: what a name or word in the results means, all names of a kind, or what a plugin implements."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any, get_args

from tuneoff.base.output import columns, one_line, write, write_json
from tuneoff.base.targets import nearest

WORDS: Mapping[str, str] = {
    "better": "of a pair: the difference is shown, at the family's confidence, and is not within the margin",
    "worse": "of a pair: the other one is better",
    "equivalent": "of a pair: shown to differ by less than the margin, which is more than that no difference was seen",
    "equivalent though different": "of a pair: a difference is shown, and it is within the margin: too small to matter",
    "not decided": "of a pair: neither a difference nor equivalence is shown; more seeds may show either",
    "not judged": "of a pair: no claim was tried, since there are too few seeds or too few values",
    "robust": "of a verdict: every other reasonable choice (estimate, a seed less, undisturbed runs only) has the same one",
    "not robust": "of a verdict: another reasonable choice has another verdict; which one stands beside it",
    "margin": "the smallest difference that matters; the file sets it, and 5 % is the default of a ratio",
    "noise floor": "what the same framework differs by from itself, where the file names it twice: the interval of that pair",
    "family": "the comparisons that share an error rate: the more pairs, the wider each interval (Bonferroni)",
    "done": "of a run: it ended well, its best configuration was tested, and all is un-deployed",
    "failed": "of a run: it ended with an error; in a median it is worse than any run that is done",
    "timeout": "of a run: a step took longer than the file allows; it counts as failed",
    "interrupted": "of a run: its command was stopped; --resume repeats it, --continue keeps its finished trials",
    "skipped": "of a run: it was never started; the reason is known before: something is missing, not offered, or the same",
    "planned": "of a run: it was not begun yet",
    "running": "of a run: it was begun, and its command still works on it",
    "emulated": "of a run: the platform is a local stand-in, so its figures are not the framework's, and are in no ranking",
    "estimated": "of a figure, marked ~: it rests on a model or a constant, not on a meter",
    "framework": "what runs the trials; 'no framework' is serial, the floor",
    "job time": "of a run, without the test, which is tuneoff's own (time.jct_without_test): the median, lowest and highest seed",
    "x": "job time over the reference's with the same seed: the middle, its range, and + faster, - slower, ? not decided",
    "added": "by a framework: see 'added per job', 'added per trial'; the verdict is on 'overhead in all'",
    "added per job": "deploy, setup, workers' start, result collection and un-deploy, in seconds: once, however many trials",
    "added per trial": "what each trial beyond the workers' first ones adds, in seconds (overhead.further_trial)",
    "overhead in all": "time without training while trials were to come, workers' start included, per trial (overhead.per_trial)",
    "extrapolated": "of a length: over ten times the longest trial or job that was measured, so it rests on what those added",
    "test score": "of the selected model on the test split (quality.test), the median; the arrow says which direction is better",
    "validation": "the score of the selected trial on validation (quality.validation), where there is no test",
    "energy per trial": "of the whole job, with start-up and idle slots, over its completed trials (energy.per_completed_trial)",
    "knee": "of workers: where more of them wait instead of train, as the framework keeps no more than so many busy at once",
    "runs failed": "of the runs that were tried: failed or timed out",
    "floor": "serial, a plain pool of processes without any framework: what is added to it is what a framework costs",
}
NAME = "explain"
HELP = "say what a metric, flag, verdict, event, field, column or check means; or print what a plugin implements"
EXAMPLE = "tuneoff explain disturbed JCT 'not decided'"
Entry = tuple[str, str, str]  # name, what it is (unit, type, fields), meaning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    topics = f"{', '.join(TOPICS)}; or {', '.join(INTERFACES)} for what a plugin implements (Markdown)"
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"any names, or one of {topics}; default: list these")
    parser.add_argument("--json", action="store_true", help="write JSON: a list of objects with topic, name, detail, text")


def execute(arguments: argparse.Namespace) -> int:
    words = " ".join(arguments.names)
    names = [words] if _word(words) in WORDS else list(dict.fromkeys(arguments.names))  # "not decided" needs no quotes
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


def _word(heading: str) -> str:
    """Return the word of a heading of the first table: `added s/trial` is `added per trial`, `x Optuna` is `x`."""
    text = re.sub(r"\b[sJ]/", "per ", heading.strip("()")).partition(",")[0].removesuffix(" ↓").removesuffix(" ↑")
    return "x" if re.match("[x×] ", text) else text


def _is_of(name: str, topic: str, entry: str) -> bool:
    from tuneoff.experiment.metric_catalogue import general_name, metric

    if topic == "metrics":
        return entry == general_name(name) or name == metric(entry).heading
    if topic == "words" and entry == _word(name):
        return True
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


def declared() -> Iterator[Entry]:
    """Declared parts of an experiment, each held to what was found."""
    from tuneoff.measure.declared_resources import TABLE_1

    yield from ((symbol, unit, name) for symbol, (name, unit) in TABLE_1.items())


def words() -> Iterator[Entry]:
    """Verdicts of pairs, statuses of runs, and what stands beside them."""
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
    """Checks of `tuneoff check`, of adapters and of workloads, with what to do where one fails."""
    from tuneoff.trust.check.checks import CHECKS
    from tuneoff.trust.workload_check import checks as of_workloads

    yield from ((check.id, check.way_out, check.reason) for check in CHECKS)
    yield from ((check.id, check.way_out, f"of a workload: {check.reason}") for check in of_workloads.CHECKS)


TOPICS: Mapping[str, Callable[[], Iterator[Entry]]] = {
    "metrics": metrics,
    "flags": flags,
    "declared": declared,
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


def interface(*modules: str) -> str:
    """Return a page with the signature and docstring of every class, method and function of these modules, each once."""
    shown: set[int] = set()
    return "\n\n".join(part for name in modules for part in _module(name, shown))


def _module(name: str, shown: set[int]) -> Iterator[str]:
    """Yield what a module has: by its `__all__`, else what it defines."""
    module = importlib.import_module(name)
    yield f"# `{name}`\n\n{inspect.getdoc(module) or ''}"
    own = [key for key, item in vars(module).items() if getattr(item, "__module__", None) == name and not key.startswith("_")]
    for item in (getattr(module, key) for key in getattr(module, "__all__", own)):
        if id(item) in shown or not isinstance(item, type | FunctionType):
            continue
        shown.add(id(item))
        yield from _class(item) if isinstance(item, type) else _function(item, "## ")


def _class(item: type) -> Iterator[str]:
    yield f"## `class {item.__name__}`\n\n{inspect.getdoc(item) or ''}".rstrip()
    if issubclass(item, enum.Enum):
        yield "\n".join(f"- `{member.name}`: {member.value}" for member in item)
    fields = list(_fields(item))
    if fields:
        yield "\n".join(fields)
    for name, member in vars(item).items():
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, property):
            yield f"### `{item.__name__}.{name}`\n\n{inspect.getdoc(member) or ''}".rstrip()
        elif isinstance(member, FunctionType | classmethod | staticmethod) and not _is_made(item, name):
            yield from _function(getattr(item, name), f"### `{item.__name__}.", name)


def field_comments(item: type) -> dict[str, str]:
    """Return the comment beside each field of a class that has one."""
    found = re.findall(r"^    (\w+): [^#\n]*  # (.+)$", inspect.getsource(item), flags=re.MULTILINE)
    return {name: comment for name, comment in found if not comment.startswith(("type:", "noqa"))}


def _fields(item: type) -> Iterator[str]:
    """Yield the fields of a class as they are written, in Markdown: `name: type = default`, and the comment beside it."""
    comments = field_comments(item)
    defaults = {field.name: field for field in dataclasses.fields(item)} if dataclasses.is_dataclass(item) else {}
    for name, kind in inspect.get_annotations(item).items():
        field: Any = defaults.get(name)
        default = vars(item).get(name, dataclasses.MISSING) if field is None else field.default
        if inspect.ismemberdescriptor(default):  # a slot
            default = dataclasses.MISSING
        written = f"{name}: {kind}" + ("" if default is dataclasses.MISSING else f" = {default!r}")
        yield f"- `{written}`" + (f": {comments[name]}" if name in comments else "")


def _is_made(item: type, name: str) -> bool:
    """Tell whether a method was written by `dataclass`."""
    return name == "__init__" and dataclasses.is_dataclass(item)


def _function(item: Any, head: str, name: str = "") -> Iterator[str]:
    begin = head if name else f"{head}`"
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(item)))  # annotations are not evaluated
    yield f"{begin}{name or item.__name__}{signature}`\n\n{inspect.getdoc(item) or ''}".rstrip()
