"""Hold the documentation to the code: what the code has must stand on its page, links must resolve, examples must load."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml

from event_logs import example_a, example_b
from tuneoff.adapter import Adapter
from tuneoff.capabilities import Capabilities, Support
from tuneoff.check.checks import CHECKS
from tuneoff.check.contract import AdapterContract
from tuneoff.cli.main import COMMANDS, EXIT_CODES
from tuneoff.events import schema
from tuneoff.experiment.build import build_experiments
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.schema import TimeoutsPart, WorkersPart, json_schema
from tuneoff.experiment.spec import Strategy
from tuneoff.experiment.strategies import PRUNERS, SAMPLERS, check_pruner
from tuneoff.frames.columns import TABLES
from tuneoff.metrics.all import compute_metrics
from tuneoff.metrics.energy import RESIDUAL_FLAG
from tuneoff.records import model
from tuneoff.records.derive import derive
from tuneoff.supervisor.limits import TOO_FEW
from tuneoff.trial.faults import Retries
from tuneoff.trial.limits import NOT_JOINED, NOT_PINNED
from tuneoff_adapters.katib import layout as katib_layout
from tuneoff_adapters.katib import offers as katib
from tuneoff_adapters.katib import results as katib_results
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.optuna import offers as optuna
from tuneoff_adapters.ray_tune import environment as ray_environment
from tuneoff_adapters.ray_tune import offers as ray
from tuneoff_adapters.serial import SerialAdapter
from tuneoff_adapters.syne_tune import offers as syne

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
SOURCES = ("core", "adapters", "workloads")
PAGES = sorted(DOCS.glob("*.md"))
LEAST = {"workload": "null", "adapters": ["serial"], "budget": {"trials": 6, "epochs_per_trial": 3}}


@dataclass(frozen=True)
class Facts:
    """Texts that must all stand on a page."""

    page: str
    what: str
    texts: tuple[str, ...]

    def missing_in(self, text: str) -> list[str]:
        """Return the texts that do not stand there."""
        return [item for item in self.texts if item not in text]


def quoted(page: str, what: str, names: Iterable[str]) -> Facts:
    """Return facts for names that must stand in backticks."""
    return Facts(page, what, tuple(f"`{name}`" for name in dict.fromkeys(names)))


def metric_names() -> Iterable[str]:
    """Yield the metrics of the worked examples, the variable part of a name as the page writes it."""
    for log, spec in (example_a(), example_b()):
        for name in compute_metrics(derive(log.pairs(), spec)):
            yield re.sub(r"^(test|stage)\..*", r"\1.NAME", re.sub(r"\[\d+\]", "[N]", name))


def schema_keys() -> Iterable[str]:
    """Yield every key of the experiment file."""
    whole = json_schema()
    for part in (whole, *whole["$defs"].values()):
        yield from part.get("properties", {})


def in_sources(pattern: str) -> list[str]:
    """Return what a pattern finds in the sources, sorted."""
    paths = [path for folder in SOURCES for path in (REPOSITORY / folder).rglob("*.py")]
    return sorted({found for path in paths for found in re.findall(pattern, path.read_text())})


def record_fields() -> Iterable[str]:
    records: tuple[Any, ...] = (
        *(model.RunRecord, model.StepRecord, model.RefusalRecord, model.StageRecord, model.BestRecord, model.TestRecord),
        *(model.FlagRecord, model.SealedFile, model.TrialRecord),
    )
    for record in records:
        yield from (field.name for field in fields(record))
    for struct in (model.AttemptRecord, model.EpochRecord):
        yield from (field.name for field in msgspec.structs.fields(struct))


def class_names() -> Iterable[str]:
    """Yield the classes that the built-in adapters say they use."""
    for capabilities in (SerialAdapter.capabilities, optuna.CAPABILITIES, ray.CAPABILITIES, syne.CAPABILITIES):
        for offer in (*capabilities.samplers.values(), *capabilities.pruners.values()):
            if offer.support is Support.YES:
                yield from (dotted.rpartition(".")[2] for dotted in re.findall(r"[a-z_]\w*(?:\.\w+)+", offer.implementation))
    yield from syne.HALVING_CLASSES.values()


def option_names() -> Iterable[str]:
    for capabilities in (
        SerialAdapter.capabilities,
        optuna.CAPABILITIES,
        ray.CAPABILITIES,
        syne.CAPABILITIES,
        katib.CAPABILITIES,
    ):
        for offer in capabilities.samplers.values():
            yield from offer.options
    for pruner in PRUNERS:
        yield from check_pruner(Strategy(name=pruner), epochs_per_trial=9).options


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return a call as a page shows it: its name and its parameters."""
    return f"{name}({', '.join(item for item in inspect.signature(function).parameters if item != 'self')})"


def katib_defaults() -> Iterable[tuple[str, str]]:
    """Yield the options that have a value by default, as the page writes it."""
    for option in fields(KatibOptions):
        if isinstance(option.default, float):
            yield option.name, f"{option.default:g}"
        elif isinstance(option.default, str):
            yield option.name, f"`{option.default}`"


def refused_on_emulated() -> Iterable[str]:
    """Yield the begin of the row of each sampler that only a cluster has."""
    for sampler, algorithm in katib.ALGORITHMS.items():
        if algorithm not in katib.EMULATIONS:
            yield f"| `{sampler}` | `{algorithm}` ("


EVENTS = get_args(schema.AnyEvent)
DEFAULTS = [(name, getattr(part, name)) for part in (TimeoutsPart(), WorkersPart()) for name in type(part).model_fields]
FLAGS = in_sources(r"""(?:flag\(|FlagRecord\(name=|append\(\()\s*"([a-z]+_[a-z_]+)\"""") + in_sources(
    r' if is_\w+ else "([a-z]+_[a-z_]+)", text='
)
FACTS = [
    quoted("metrics.md", "metrics", metric_names()),
    quoted("results.md", "event types", (kind.__struct_config__.tag for kind in EVENTS)),
    quoted("results.md", "event fields", (name for kind in EVENTS for name in kind.__struct_fields__)),
    quoted("results.md", "fields of run.json", record_fields()),
    quoted("results.md", "statuses and states", (*get_args(model.RunStatus), *get_args(model.AttemptState))),
    quoted("results.md", "flags", (*FLAGS, NOT_JOINED, NOT_PINNED, TOO_FEW, RESIDUAL_FLAG)),
    quoted("results.md", "limits in force", ("cpus", "processors", "cpu_quota", "threads", "memory", "trial_seconds")),
    quoted("data.md", "columns", (name for columns in TABLES.values() for name in columns)),
    quoted("results.md", "environment variables", in_sources(r'"(TUNEOFF_[A-Z_]+)"')),
    quoted("results.md", "entry-point groups", ("tuneoff.adapters", "tuneoff.workloads")),
    Facts("results.md", "exit codes", tuple(f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())),
    Facts("results.md", "format versions", (f"| `run.json` (`format_version`) | {model.FORMAT_VERSION} |",)),
    Facts("results.md", "event version", (f"| event files (`version` of `process`) | {schema.SCHEMA_VERSION} |",)),
    quoted("experiments.md", "keys", schema_keys()),
    quoted("experiments.md", "samplers and pruners", (*SAMPLERS, *PRUNERS, *syne.CLASSES, *katib.CAPABILITIES.samplers)),
    quoted("experiments.md", "options", option_names()),
    Facts("experiments.md", "defaults", tuple(f"| `{name}` | {value:g}" for name, value in DEFAULTS if value is not None)),
    quoted("adapters.md", "classes", class_names()),
    quoted("adapters.md", "Ray's variables", (*ray_environment.SETTINGS, *ray_environment.REMOVED)),
    Facts("adapters.md", "Ray's values", tuple(f"| `{name}` | {value[0]} |" for name, value in ray_environment.SETTINGS.items())),
    Facts(
        "adapters.md",
        "methods",
        tuple(f"| `{name}(" for name in vars(Adapter) if not name.startswith("_") and callable(getattr(Adapter, name))),
    ),
    quoted("adapters.md", "the retry helper", (signature("Retries", Retries), signature("may_retry", Retries.may_retry))),
    Facts("adapters.md", "settings of the contract tests", tuple(f"`{name}" for name in AdapterContract.__annotations__)),
    quoted("conformance.md", "checks", (check.id for check in CHECKS)),
    quoted("katib.md", "options", (option.name for option in fields(KatibOptions))),
    Facts("katib.md", "defaults", tuple(f"| `{name}` | {value} |" for name, value in katib_defaults())),
    quoted("katib.md", "samplers and pruners", (*katib.CAPABILITIES.samplers, *katib.CAPABILITIES.pruners)),
    quoted("katib.md", "Katib's algorithms", katib.ALGORITHMS.values()),
    Facts("katib.md", "what is refused on emulated", tuple(refused_on_emulated())),
    Facts("katib.md", "places", (katib_layout.POD_MODULE, katib_layout.DATA_DIR, "tuneoff_adapters.katib.emulated")),
    quoted("results.md", "flags of Katib", (katib_results.NOT_COMPLETED, *in_sources(r'return "([a-z]+_[a-z_]+)", (?:died|f")'))),
    quoted("adapters.md", "capabilities", (field.name for field in fields(Capabilities))),
]
IDS = [f"{facts.page}: {facts.what}" for facts in FACTS]


@pytest.mark.parametrize("facts", FACTS, ids=IDS)
def test_what_the_code_has_stands_on_its_page(facts: Facts) -> None:
    assert facts.texts
    assert facts.missing_in((DOCS / facts.page).read_text()) == []


@pytest.mark.parametrize("facts", FACTS, ids=IDS)
def test_a_page_that_lacks_something_is_found(facts: Facts) -> None:
    lacking = facts.texts[-1]
    assert lacking in facts.missing_in((DOCS / facts.page).read_text().replace(lacking, ""))


# --- links ---


def broken_links(page: Path, text: str) -> list[str]:
    """Return the relative links of a page whose file or heading does not exist."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists() or (anchor and anchor not in anchors(text if not name else path.read_text())):
            broken.append(target)
    return broken


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_resolves(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


def test_a_broken_link_is_found() -> None:
    text = "# One heading\n[a](nowhere.md) [b](metrics.md#no-such-heading) [c](#one-heading) [d](#two) [e](https://example.org/x)"
    assert broken_links(DOCS / "results.md", text) == ["nowhere.md", "metrics.md#no-such-heading", "#two"]


# --- examples ---


def examples(text: str) -> list[dict[str, Any]]:
    """Return the indented blocks of a page that are mappings in YAML."""
    blocks = re.findall(r"(?:^    .*\n?)+", text, flags=re.MULTILINE)
    return [block for block in map(yaml.safe_load, blocks) if isinstance(block, dict)]


def load(example: dict[str, Any], folder: Path) -> None:
    """Load an example, completed to a whole file, as `tuneoff plan` does."""
    whole = example if "include" in example else {**LEAST, **example}
    if "include" in example:
        (folder / example["include"]).write_bytes((REPOSITORY / "benchmarks" / example["include"]).read_bytes())
    path = folder / "example.yaml"
    path.write_text(yaml.safe_dump(whole))
    build_experiments(load_matrix(path))


def test_the_examples_of_experiment_files_load(tmp_path: Path) -> None:
    found = examples((DOCS / "experiments.md").read_text())
    assert len(found) == 6
    for example in found:
        if "configurations" in example and "include" not in example:
            example = {**example, "budget": {"epochs_per_trial": 3}}
        load(example, tmp_path)


def test_an_example_with_a_wrong_key_is_found(tmp_path: Path) -> None:
    (example,) = examples("    bugdet: {trials: 3}\n")
    with pytest.raises(Exception, match="unknown key 'bugdet'"):
        load(example, tmp_path)


# --- commands ---


def unknown_commands(text: str) -> list[str]:
    """Return the commands of tuneoff that a page names and that do not exist."""
    known = {command.NAME for command in COMMANDS}
    return [name for name in re.findall(r"(?:`|^    )tuneoff ([a-z][a-z-]*)", text, flags=re.MULTILINE) if name not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_exists(page: Path) -> None:
    assert unknown_commands(page.read_text()) == []


def test_an_unknown_command_is_found() -> None:
    assert unknown_commands("`tuneoff plan FILE`, `tuneoff prove DIR`\n    tuneoff bench x\n") == ["prove", "bench"]
