"""`tuneoff explain`: what a name or word in the results means, all names of a kind, or what a plugin implements."""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from tuneoff.base.output import columns, one_line, write, write_json
from tuneoff.base.targets import nearest
from tuneoff.cli import manual
from tuneoff.cli.interfaces import INTERFACES, declaration, field_comments, first_line, interface, interface_items

if TYPE_CHECKING:
    from tuneoff.base.capabilities import Offer

WORDS: Mapping[str, str] = {
    "better": "of a pair: a difference is shown at the family's confidence, and is not within the margin",
    "worse": "of a pair: the other one is better",
    "equivalent": "of a pair: shown to differ by less than the margin, which is more than seeing no difference",
    "equivalent though different": "of a pair: a difference is shown within the margin: too small to matter",
    "not decided": "of a pair: neither a difference nor equivalence is shown; more seeds may show either",
    "undecided": "of a pair: what tables call 'not decided': neither a difference nor equivalence is shown",
    "not judged": "of a pair: there are too few seeds or values for a verdict",
    "robust": "of a verdict: every other reasonable choice (estimate, a seed less, undisturbed runs only) has the same one",
    "not robust": "of a verdict: another reasonable choice, named next to it, has another verdict",
    "margin": "the smallest difference that matters; the file sets it, the default of a ratio is 5 %",
    "noise floor": "the difference of a framework from itself, where the file names it twice: the interval of that pair",
    "family": "the comparisons that share an error rate: the more pairs, the wider each interval (Bonferroni)",
    "done": "of a run: it ended well, its best configuration was tested, and un-deploy is complete",
    "failed": "of a run: it ended with an error; in a median it is worse than any done run",
    "timeout": "of a run: a step exceeded its limit in the file; it counts as failed",
    "interrupted": "of a run: its command was stopped; --resume repeats it",
    "skipped": "of a run: never started, for a reason known in advance: something is missing, not offered, or the same",
    "planned": "of a run: not started yet",
    "running": "of a run: started, and its command still works on it",
    "estimated": "of a figure, marked ~: it rests on a model or a constant, not on a meter",
    "reports": "of a run: the epochs that a trial reports to its framework: none, its best one at its end, or every one",
    "job time": "of a run, without the test, which is tuneoff's own (time.jct_without_test): the median, lowest and highest seed",
    "x": "job time over the reference's with the same seed: the median, its range, and ▲ faster, ▼ slower, ? not decided",
    "added": "by a framework: 'added per job' + (trials - workers) / workers x ('added per trial' + reports x 'per report')",
    "added per job": "once, above the baseline's: deploy, setup, workers' start, result collection and un-deploy, in seconds",
    "added per trial": "what each trial after the workers' first ones adds besides its reports, in s (overhead.further_trial)",
    "added per report": "how many reports a trial makes, and what each adds, in ms (overhead.per_report): 200 x 2.3",
    "less than 5 %": "of a job: it and its trials are over 40 times as long as what is added to each",
    "base": "of the baseline: what a framework adds to a job is above what it takes; 'own': all of it, without a baseline",
    "overhead per trial": "time without training while trials were due, start-up included, per trial (overhead.per_trial)",
    "extrapolated": "over ten times the longest measured trial, job or number of reports of the same framework",
    "few undisturbed runs": "of a length: fewer than six, so its range is from the lowest to the highest of all runs",
    "test score": "of the selected model on the test split (quality.test), the median; the arrow says which direction is better",
    "validation": "the score of the selected trial on validation (quality.validation), where there is no test",
    "energy per trial": "of the job with start-up and idle slots, but without tuneoff's own test, over its completed trials "
    "(energy.per_completed_trial_without_test)",
    "knee": "of workers: above it more of them wait than train, as the framework keeps only so many busy",
    "runs failed": "of the tried runs: failed or timed out",
    "baseline": "serial: worker processes without any framework, on the same platform with the same option `start`",
}
NAME = "explain"
HELP = "say what a word, verdict, metric, flag, key, column, event or check means; or print what a plugin implements"
EXAMPLE = "tuneoff explain disturbed JCT 'not decided'"
SCHEMAS = ("experiment", "run", "prices")
Row = tuple[str, str, str, str]  # topic, and an entry
Entry = tuple[str, str, str]  # name, what it is (unit, type, fields), meaning


def add_arguments(parser: argparse.ArgumentParser) -> None:
    topics = f"{', '.join(TOPICS)}; or {', '.join(INTERFACES)} for what a plugin implements"
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"any names, or one of {topics}; default: list these")
    parser.add_argument("--json", action="store_true", help="write JSON: a list of objects with topic, name, detail, text")
    parser.add_argument(
        "--schema", choices=SCHEMAS, help="print the JSON Schema of the experiment file, of run.json, or of a price file"
    )


def execute(arguments: argparse.Namespace) -> int:
    if arguments.schema is not None:
        return _schema(arguments.schema, arguments.names)
    names = list(dict.fromkeys(arguments.names))
    documents = {}  # of what has more to say than a line: an interface, a class or function of one, a page of docs/
    for name in names:
        if name in INTERFACES:
            documents[name] = interface(name)
        elif name in manual.pages():
            documents[name] = manual.page_text(name.rpartition("/")[2])
        elif (item := interface_items().get(name)) is not None:
            documents[name] = declaration(name, item)
    topics = names if set(names) <= TOPICS.keys() else TOPICS.keys()  # a topic is listed without the others
    every = [(topic, *entry) for topic, entries in TOPICS.items() if topic in topics for entry in entries()] if names else []
    rows = [entry for name in names for entry in _explained(name, every, name in documents)]
    if not names:
        counts = {topic: sum(1 for _ in entries()) for topic, entries in TOPICS.items()}
        rows = [(topic, f"{counts[topic]} names", "", one_line(entries.__doc__ or "")) for topic, entries in TOPICS.items()]
    if arguments.json:
        rows += [("documents", name, "", text) for name, text in documents.items()]
        write_json([dict(zip(("topic", "name", "detail", "text"), entry, strict=True)) for entry in rows])
        return 0
    lines = [(topic, name, one_line(f"{text} ({detail})" if detail else text).lstrip()) for topic, name, detail, text in rows]
    table = columns(("kind", "name", "meaning"), lines) if lines else ""
    write("\n\n".join(filter(None, (table, *documents.values()))))
    return 0


def _schema(kind: str, names: Sequence[str]) -> int:
    from tuneoff.errors import ExperimentError
    from tuneoff.experiment.schema import json_schema, price_file_schema
    from tuneoff.record.store import run_json_schema

    if names:
        raise ExperimentError(f"--schema {kind} takes no names; leave out {' '.join(names)}")
    write_json({"experiment": json_schema, "run": run_json_schema, "prices": price_file_schema}[kind]())
    return 0


def _explained(name: str, every: Sequence[Row], has_document: bool) -> list[Row]:
    """Return the entries of a topic, or all of `every` that have this name, in singular or plural.

    Raises:
        ExperimentError: there is none, and no document; the nearest name is in the text.
    """
    from tuneoff.errors import ExperimentError

    if name in TOPICS:
        return [entry for entry in every if entry[0] == name]
    for form in (name, name.removesuffix("s"), f"{name}s"):
        if matches := [entry for entry in every if _is_of(form, entry[0], entry[1])]:
            return matches
    if parts := [entry for entry in every if entry[0] in ("metrics", "checks") and _plain(name) in _parts(entry[1])]:
        return parts
    if not has_document:
        names = (*TOPICS, *INTERFACES, *(entry[1] for entry in every))
        similar = nearest(name, names, cutoff=0.99 - max(1, len(name) // 4) / max(1, len(name)))  # a letter in four may be wrong
        raise ExperimentError(f"nothing is named {name!r}{similar}; kinds of names: {', '.join(TOPICS)}")
    return []


def _word(heading: str) -> str:
    """Return the word of a heading of the first table: `added s/trial` is `added per trial`, `x Optuna` is `x`."""
    text = re.sub(r"\b(s|ms|J)/", "per ", " ".join(heading.split()).strip("()"))
    text = re.sub(r", (s|J)( median \(min-max\)?)?$| [↓↑]", "", text)
    return "x" if text.startswith(("x ", "× ")) else text


def _is_of(name: str, topic: str, entry: str) -> bool:
    from tuneoff.experiment.metric_catalogue import general_name, metric

    if topic == "metrics":
        return entry == general_name(name) or _plain(name) == _plain(metric(entry).heading)
    if topic == "words" and entry == _word(name):
        return True
    if topic == "pages" and _plain(name) == entry.removeprefix(f"{manual.FOLDER}/").removesuffix(".md"):
        return True
    return _plain(entry) == _plain(name) or (topic in ("columns", "record", "keys") and entry.rpartition(".")[2] == name)


def _parts(entry: str) -> tuple[str, str]:
    """Return the family of a metric or check, and its own last word, which a table may have as its heading."""
    return _plain(entry.partition(".")[0]), _plain(entry.rpartition(".")[2])


@functools.cache
def _plain(name: str) -> str:
    """Return a name in the one form of its spellings: `JCT` and `jct`, `warm-up` and `warm_up`."""
    return re.sub("[-_ ]", " ", name.lower())


def metrics() -> Iterator[Entry]:
    """Metrics of `run.json`; N stands for a slot, NAME for a score, a stage or a part of the job."""
    from tuneoff.experiment.metric_catalogue import METRICS

    directions = {"lower": "lower is better", "higher": "higher is better", "objective": "better as the objective is"}
    for metric in METRICS.values():
        yield metric.name, f"{metric.unit or 'its score'}; {directions[metric.better]}", metric.title


def flags() -> Iterator[Entry]:
    """What a reader of a run must know."""
    from tuneoff.record.flag_meanings import FLAGS, weight

    yield from ((name, weight(name), text) for name, text in FLAGS.items())


def declared() -> Iterator[Entry]:
    """Declared parts of an experiment, each held to what was found."""
    from tuneoff.measure.declared_variables import TABLE_1

    yield from ((symbol, unit, name) for symbol, (name, unit) in TABLE_1.items())


def words() -> Iterator[Entry]:
    """The documentation's words, verdicts of pairs, statuses of runs, and what stands beside them."""
    for names, text in (row.cells for row in manual.rows(manual.INDEX) if row.section == "Words"):
        parts, each = names.split(", "), text.split("; ")
        yield from ((name, "", each[at] if len(each) == len(parts) else text) for at, name in enumerate(parts))
    yield from ((name, "", text) for name, text in WORDS.items())


def samplers() -> Iterator[Entry]:
    """Samplers of the experiment file: what they are, their options, and which adapters offer them."""
    from tuneoff.experiment.strategies import SAMPLERS

    yield from _strategies("samplers", SAMPLERS)


def pruners() -> Iterator[Entry]:
    """Pruners of the experiment file: what they do, their options, and which adapters offer them."""
    from tuneoff.experiment.strategies import PRUNERS

    yield from _strategies("pruners", PRUNERS)


def keys() -> Iterator[Entry]:
    """Keys of the experiment file and of a price file, with their defaults."""
    from tuneoff.experiment.schema import json_schema, price_file_schema

    rules: dict[str, Sequence[str]] = {}
    for row in manual.rows("experiments.md"):
        prefix, sign, _ = row.cells[0].partition(": ")
        above = prefix if sign else "" if row.section == "Keys" else row.section
        rules.update({f"{above}.{name}".lstrip("."): row.cells for name in row.names})
    for name, default, text in (*_keys("", json_schema()), *_keys("prices.", price_file_schema())):
        _, documented, rule = rules.get(name, ("", "", ""))
        default, text = documented or default, text if rule.startswith("see below") else rule or text
        yield name, f"default: {default}" if default else "", text


def pages() -> Iterator[Entry]:
    """Pages of docs/; to print one: tuneoff explain docs/NAME.md."""
    yield from ((name, "", text) for name, text in manual.pages().items())


def classes() -> Iterator[Entry]:
    """Classes, functions and types that authors of plugins import; to print one: tuneoff explain NAME."""
    yield from ((name, "", first_line(name, item)) for name, item in interface_items().items())


def events() -> Iterator[Entry]:
    """Types of event lines, with their fields."""
    from tuneoff.record.events import schema

    for kind in get_args(schema.AnyEvent):
        fields = [name for name in kind.__struct_fields__ if name not in schema.Event.__struct_fields__]
        yield str(kind.__struct_config__.tag), ", ".join(fields), inspect.getdoc(kind) or ""


def record() -> Iterator[Entry]:
    """Fields of `run.json`, with their types."""
    from tuneoff.record import run_record

    for part in vars(run_record).values():
        if not inspect.isclass(part) or part.__module__ != run_record.__name__:
            continue
        text = one_line((inspect.getdoc(part) or "").partition("\n\n")[0])
        yield part.__name__, "", text
        comments = field_comments(part)  # type: ignore[arg-type]  # what narrows to `type[object]`
        for name, kind in inspect.get_annotations(part).items():
            yield f"{part.__name__}.{name}", str(kind).removesuffix(" | msgspec.UnsetType"), comments.get(name, "")


def record_columns() -> Iterator[Entry]:
    """Columns of the tables of `tuneoff export` and `tuneoff.load`."""
    from tuneoff.tell.frames.tables import RUN_KEYS, TABLES, Columns

    parts: Mapping[str, Columns] = {"*": RUN_KEYS, **TABLES}
    for table, table_columns in parts.items():
        for name, column in table_columns.items():
            if table == "*" or name not in RUN_KEYS:
                missing = "" if column.always else ", may be missing"
                yield f"{table}.{name}", ", ".join(filter(None, (column.unit, column.dtype))) + missing, column.text


def checks() -> Iterator[Entry]:
    """Checks of `tuneoff check`, of adapters and of workloads, with what to do where one fails."""
    from tuneoff.trust.check.checks import CHECKS
    from tuneoff.trust.workload_check import checks as of_workloads

    yield from ((check.id, check.way_out, check.reason) for check in CHECKS)
    yield from ((check.id, check.way_out, f"of a workload: {check.reason}") for check in of_workloads.CHECKS)


def _strategies(kind: str, vocabulary: Sequence[str]) -> Iterator[Entry]:
    """Yield the vocabulary, and what adapters offer beyond it; what they are stands in docs/experiments.md."""
    from tuneoff.base.capabilities import Support
    from tuneoff.registry import list_adapters

    offers: dict[str, dict[str, Offer]] = {name: {} for name in vocabulary}
    documented = {
        name: row.cells for row in manual.rows("experiments.md") if row.section == kind.capitalize() for name in row.names
    }
    offers.update({name: {} for name in documented})
    for listing in list_adapters():
        offered: Mapping[str, Offer] = getattr(listing.capabilities, kind, {})
        for name, offer in offered.items():
            if offer.support is Support.YES:
                offers.setdefault(name, {})[listing.plugin.name] = offer
    for name, by in offers.items():
        first = next(iter(by.values()), None)
        fallback = ("", first.note or first.implementation, ", ".join(first.options)) if first is not None else ("", "", "")
        _, text, options = documented.get(name, fallback)
        yield (
            name,
            f"options: {options or 'none'}; of {', '.join(by) or 'no installed adapter'}: tuneoff list adapters NAME",
            text,
        )


def _keys(above: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield name, default ("": none that is a plain value) and text of each key of a JSON Schema, those of its parts after it."""
    parts = schema.get("$defs", {})

    def of(above: str, part: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
        for key, value in part.get("properties", {}).items():
            below = [parts[name] for name in dict.fromkeys(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(value)))]
            default = value.get("default")
            is_plain = isinstance(default, str | int | float)
            text = value.get("description") or (below or [part])[0].get("description", "")
            yield f"{above}{key}", json.dumps(default) if is_plain else "", text
            for reference in below:
                yield from of(f"{above}{key}.", reference)

    return of(above, schema)


TOPICS: Mapping[str, Callable[[], Iterator[Entry]]] = {
    "metrics": metrics,
    "flags": flags,
    "declared": declared,
    "words": words,
    "samplers": samplers,
    "pruners": pruners,
    "keys": keys,
    "events": events,
    "record": record,
    "columns": record_columns,
    "checks": checks,
    "classes": classes,
    "pages": pages,
}
