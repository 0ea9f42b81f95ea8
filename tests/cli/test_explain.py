"""`tuneoff explain`: it has every name of the code, finds one by its name, and prints the interface of plugins."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from builders.event_logs import example_a
from command_line import Call
from corpus.scenarios import FOUR
from corpus.scenarios import choice as choice_among
from tuneoff.adapter import Adapter, Capabilities, Support
from tuneoff.base.process_limits import NOT_JOINED, NOT_PINNED
from tuneoff.cli.explain import TOPICS, WORDS
from tuneoff.cli.interfaces import INTERFACES
from tuneoff.cli.main import main
from tuneoff.experiment.metric_catalogue import metric_names
from tuneoff.experiment.schema import json_schema, price_file_schema
from tuneoff.experiment.strategies import PRUNERS, SAMPLERS
from tuneoff.judge.answers.answer import Outcome
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.metrics import ADDED, COLUMNS, FOOTPRINT
from tuneoff.measure.declared_variables import with_declared
from tuneoff.measure.energy import RESIDUAL_FLAG
from tuneoff.record import run_record as model
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.flag_meanings import FLAGS, HARMLESS, MACHINE, SERIOUS, marked, weight
from tuneoff.record.run_record import RunStatus
from tuneoff.registry import list_adapters
from tuneoff.run.supervisor.limits import TOO_FEW
from tuneoff.tell.frames.tables import RUN_KEYS, TABLES
from tuneoff.tell.page.frameworks import framework_tables
from tuneoff.tell.report.notes import NO_CIRCUMSTANCES
from tuneoff.tell.report.tables import _columns
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.workload_check.checks import CHECKS as OF_WORKLOADS
from tuneoff.workload import Workload
from tuneoff_adapters.katib import results as katib_results

Topics = Mapping[str, Sequence[dict[str, Any]]]
REPOSITORY = Path(__file__).parents[2]
EVENTS = get_args(schema.AnyEvent)


def in_sources(pattern: str) -> set[str]:
    """Return what a pattern finds in the sources."""
    paths = [path for folder in ("core", "adapters", "workloads") for path in (REPOSITORY / folder).rglob("*.py")]
    return {found for path in paths for found in re.findall(pattern, path.read_text())}


def written_flags() -> set[str]:
    """Return the names of the flags that the sources write."""
    return {
        *in_sources(r"""(?:flag\(|FlagRecord\(name=|append\(\()\s*"([a-z]+_[a-z_]+)\""""),
        *in_sources(r' if is_\w+ else "([a-z]+_[a-z_]+)", text='),
        *in_sources(r'return "([a-z]+_[a-z_]+)", (?:died|f")'),
        *(NOT_JOINED, NOT_PINNED, TOO_FEW, RESIDUAL_FLAG, katib_results.NOT_COMPLETED),
    }


def listed(call: Call, *names: str) -> list[dict[str, Any]]:
    answer = call("explain", *names, "--json")
    assert (answer.code, answer.err) == (0, "")
    found: list[dict[str, Any]] = json.loads(answer.out)
    return found


@pytest.fixture(scope="module")
def topics() -> dict[str, list[dict[str, Any]]]:
    """The entries of every topic, listed once; a key that is named like a topic is under `keys`."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(["explain", *TOPICS, "--json"]) == 0
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TOPICS}
    for entry in json.loads(out.getvalue()):
        found[entry["topic"]].append(entry)
    return found


def names_of(entries: Iterable[dict[str, Any]]) -> set[str]:
    return {entry["name"] for entry in entries}


def test_every_declared_variable_has_its_name(call: Call, topics: Topics) -> None:
    log, spec = example_a()
    assert names_of(topics["declared"]) == {one.symbol for one in with_declared(derive(log.pairs(), spec)).declared}
    assert listed(call, "declared") == topics["declared"]
    assert [entry["text"] for entry in listed(call, "tg")] == ["optimization goal"]


def test_every_flag_that_the_sources_write_has_a_meaning() -> None:
    assert written_flags() - set(FLAGS) == set()
    text = "\n".join(path.read_text() for path in (REPOSITORY / "core").rglob("*.py") if path.name != "flag_meanings.py")
    text += "\n".join(path.read_text() for path in (REPOSITORY / "adapters").rglob("*.py"))
    assert [name for name in FLAGS if f'"{name}"' not in text] == []


def test_every_metric_has_a_unit_and_a_meaning(topics: Topics) -> None:
    assert names_of(entry for entry in topics["metrics"] if entry["text"] and entry["detail"]) == set(metric_names())


def words_of_docs() -> Iterable[str]:
    """Yield the words of the documentation's table."""
    for row in (REPOSITORY / "docs" / "README.md").read_text().partition("## Words")[2].splitlines()[4:]:
        yield from row.split("|")[1].strip().split(", ")


def offered(kind: str) -> set[str]:
    """Return the names that adapters offer."""
    found = [getattr(listing.capabilities, kind) for listing in list_adapters()]
    return {name for offers in found for name, offer in offers.items() if offer.support is Support.YES}


def keys_of(above: str, schema: dict[str, Any]) -> Iterable[str]:
    """Yield the keys of a JSON Schema's first level, and of its parts that are one mapping."""
    for name, value in schema["properties"].items():
        yield f"{above}{name}"
        if "$ref" in value:
            part = schema["$defs"][value["$ref"].rpartition("/")[2]]
            yield from (f"{above}{name}.{key}" for key in part["properties"])


def fields_of_records() -> Iterable[str]:
    yield from (f"RunRecord.{name}" for name in model.RunRecord.__dataclass_fields__)
    yield from (f"AttemptRecord.{field.name}" for field in msgspec.structs.fields(model.AttemptRecord))


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        ("metrics", set(metric_names())),
        ("flags", set(FLAGS)),
        ("words", {*words_of_docs(), *Outcome, *(outcome.text for outcome in Outcome), "robust", *get_args(RunStatus)}),
        ("samplers", {*SAMPLERS, *offered("samplers")}),
        ("pruners", {*PRUNERS, *offered("pruners")}),
        ("keys", {*keys_of("", json_schema()), *keys_of("prices.", price_file_schema())}),
        ("events", {kind.__struct_config__.tag for kind in EVENTS}),
        ("record", set(fields_of_records())),
        ("columns", {f"{'*' if name in RUN_KEYS else table}.{name}" for table, own in TABLES.items() for name in own}),
        ("checks", {check.id for check in CHECKS} | {check.id for check in OF_WORKLOADS}),
        ("classes", {"RunSpec", "ExperimentSpec", "EventWriter", "TrialProcess", "Proposal", "Best", "Workload", "PowerMeter"}),
        ("pages", {f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md") if path.name != "README.md"}),
    ],
)
def test_a_topic_has_every_name(topics: Topics, topic: str, names: set[str]) -> None:
    assert names
    assert names - names_of(topics[topic]) == set()


@pytest.mark.parametrize("topic", ["words", "samplers", "pruners", "keys", "columns", "pages"])
def test_each_name_is_explained_by_a_text(call: Call, topics: Topics, topic: str) -> None:
    names = names_of(topics[topic])
    found = listed(call, *sorted(names))
    assert names_of(entry for entry in found if entry["topic"] == topic and not entry["text"]) == set()
    assert names <= names_of(found)


def test_a_word_has_its_meaning_in_one_place() -> None:
    assert set(words_of_docs()) & set(WORDS) == set()


def test_each_heading_of_the_other_tables_and_each_question_is_explained(call: Call) -> None:
    tables = list(framework_tables([], NO_CIRCUMSTANCES))
    headings = [head.text for table in tables for head in table.heads[-len(table.columns) :]]
    assert len(headings) == len((*COLUMNS, *ADDED, *FOOTPRINT))
    questions = ("quality", "time", "overhead", "energy", "cost")
    assert listed(call, *headings, *questions, "variant", "sampler", "pruner", "trials", "runs", "framework", "seed", "status")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("docs/verdicts.md", "# Verdicts"),
        ("meter", "# tuneoff.meter"),
        ("RunSpec", "    experiment: ExperimentSpec\n"),
        ("trial_process", "\ndef trial_process("),
        ("Proposal", "\nProposal = tuple[str, Mapping[str, Any]]  # trial id, configuration"),
    ],
)
def test_what_has_more_to_say_than_a_line_is_printed_whole(call: Call, name: str, text: str) -> None:
    assert text in f"\n{call('explain', name).out}"
    (document,) = [entry for entry in listed(call, name) if entry["topic"] == "documents"]
    assert (document["name"], text.strip() in document["text"]) == (name, True)


@pytest.mark.parametrize("name", INTERFACES)
def test_an_interface_is_the_code_that_declares_it_without_what_it_does(call: Call, name: str) -> None:
    page = call("explain", name).out
    assert [module for module in INTERFACES[name] if f"# {module}\n" not in page] == []
    assert re.search(r"^ +(return|self\._\w+ = )|^ +def _(?!_init__)", page, re.MULTILINE) is None
    if name == "workload":
        assert [item for item in vars(Workload) if not item.startswith("_") and item not in page] == []
    if name == "adapter":
        methods = [name for name, item in vars(Adapter).items() if callable(item) and not name.startswith("_")]
        assert [name for name in methods if f"    def {name}(" not in page] == []
        assert [name for name in Capabilities.__dataclass_fields__ if f"    {name}: " not in page] == []
        for kind in ("RunSpec", "ExperimentSpec", "EventWriter", "TrialProcess", "TrialContext", "RunContext", "Best"):
            assert f"class {kind}" in page
        assert '    implementation: str = ""  # the framework\'s class, e.g. "optuna.samplers.TPESampler"' in page
        assert "Start the framework: at its return it could take any HPO job." in page
        assert 'events.write("stop_decided", trial=trial_id, epoch=epoch)' in page


def test_a_flag_has_its_weight_and_each_has_one() -> None:
    assert len(FLAGS) == len(SERIOUS) + len(MACHINE) + len(HARMLESS)
    assert [weight(name).partition(":")[0] for name in ("best_differs", "disturbed", "best_tied")] == [
        "serious",
        "of the machine",
        "harmless",
    ]
    assert marked(["disturbed", "best_differs", "disturbed", "of_a_plugin"]) == ["! best_differs", "disturbed", "of_a_plugin"]


def test_each_heading_of_the_first_table_is_explained(call: Call) -> None:
    entries = [*FOUR, replace(FOUR[1], sampler="tpe", status={3: "failed"})]
    choice = choose(answers(choice_among(*entries)))
    rows = [row for setting in choice.settings for row in setting.rows]
    headings = [heading.replace("valid-\nation", "validation") for heading, _ in _columns(choice, rows)]
    assert "runs\nfailed" in headings
    named = ("test ↓\nscore", "energy per trial, J", "added per job", "(extrapolated)", "overhead per trial")
    words = [heading.replace("\n", " ") for heading in (*headings, *named)]
    assert len(listed(call, *words)) >= len(set(words))


@pytest.mark.parametrize(
    "words",
    [
        "warm-up JCT trial",
        "left_behind test.accuracy trial_ended busy_seconds best.ties",
        "AttemptRecord.exited_ns",
        "'not decided' 'added s/trial' 'overhead per trial' 'test score' 'x Optuna (optuna-2)'",
        "left_behnd",
        "zebra",
        "regrets-only",
    ],
)
def test_names_and_words_of_tables_are_found_whatever_they_are_of(call: Call, words: str, snapshot: SnapshotAssertion) -> None:
    answer = call("explain", *shlex.split(words))
    assert f"{answer.out}{answer.err}exit code {answer.code}" == snapshot
