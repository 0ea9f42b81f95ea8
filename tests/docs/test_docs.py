"""Hold the documentation to the code: what the code has must stand on its page, links must resolve, examples must load."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import inspect
import re
import shlex
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from printed_commands import STARTS, printed, problems
from tuneoff.ask_tell import AskTellAdapter
from tuneoff.cli.command import build_parser
from tuneoff.cli.main import all_commands
from tuneoff.experiment.build import build_experiments
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.schema import json_schema
from tuneoff.experiment.spec import Strategy, Timeouts, Workers
from tuneoff.experiment.strategies import PRUNERS, SAMPLERS, check_pruner
from tuneoff.record import run_record as model
from tuneoff.record.events import schema
from tuneoff.run.trial.faults import Retries
from tuneoff.trust.check.checks import CHECKS
from tuneoff.trust.check.contract import AdapterContract
from tuneoff_adapters import rustuna
from tuneoff_adapters.katib import offers as katib
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.kubernetes import layout as katib_layout
from tuneoff_adapters.optuna import offers as optuna
from tuneoff_adapters.ray_tune import offers as ray
from tuneoff_adapters.serial import SerialAdapter
from tuneoff_adapters.syne_tune import offers as syne

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
SOURCES = ("core", "adapters", "workloads")
PAGES = sorted([*DOCS.glob("*.md"), REPOSITORY / "README.md"])
OF_A_READER = {"lock.txt", "tuneoff-my-library", "--target", "."}  # what pip is given of a reader's own
NOT_MODULES = {f"tuneoff.{name}" for name in ("adapters", "commands", "workloads", "power_meters", "kubeconfig", "tar")}
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


def schema_keys() -> Iterable[str]:
    """Yield every key of the experiment file."""
    whole = json_schema()
    for part in (whole, *whole["$defs"].values()):
        yield from part.get("properties", {})


def in_sources(pattern: str) -> list[str]:
    """Return what a pattern finds in the sources, sorted."""
    paths = [path for folder in SOURCES for path in (REPOSITORY / folder).rglob("*.py")]
    return sorted({found for path in paths for found in re.findall(pattern, path.read_text())})


def option_names() -> Iterable[str]:
    known = (SerialAdapter.capabilities, optuna.CAPABILITIES, ray.CAPABILITIES, syne.CAPABILITIES, katib.CAPABILITIES)
    for capabilities in known:
        for offer in capabilities.samplers.values():
            yield from offer.options
    for pruner in PRUNERS:
        yield from check_pruner(Strategy(name=pruner), epochs_per_trial=9).options


def signature(name: str, function: Callable[..., Any]) -> str:
    """Return a call as a page shows it: its name and its parameters."""
    return f"{name}({', '.join(item for item in inspect.signature(function).parameters if item != 'self')})"


def ask_tell_methods() -> Iterable[str]:
    """Yield the calls that a subclass for ask and tell may define, as the page writes them."""
    for name in ("open", "ask", "tell", "best", "enqueue", "report"):
        yield signature(name, getattr(AskTellAdapter, name))


def code_for_ask_and_tell() -> Iterable[str]:
    """Yield the code of a built-in adapter that the page shows."""
    yield inspect.getsource(rustuna.RustunaAdapter.open)
    yield inspect.getsource(rustuna.RustunaAdapter.ask)
    yield textwrap.indent(inspect.getsource(rustuna._suggested), "    ")


def katib_defaults() -> Iterable[tuple[str, str]]:
    """Yield the options that have a value by default, as the page writes it."""
    for option in fields(KatibOptions):
        if isinstance(option.default, float):
            yield option.name, f"{option.default:g}"
        elif isinstance(option.default, str):
            yield option.name, f"`{option.default}`"


DEFAULTS = [
    (name, value if isinstance(value, str) else f"{value:g}")
    for part in (Timeouts(), Workers())
    for name, value in asdict(part).items()
    if value not in (None, ())
]
FACTS = [
    quoted("results.md", "statuses and states", (*get_args(model.RunStatus), *get_args(model.AttemptState))),
    quoted("results.md", "limits in force", ("cpus", "processors", "cpu_quota", "devices", "threads", "memory", "trial_seconds")),
    quoted("results.md", "environment variables", in_sources(r'"(TUNEOFF_[A-Z_]+)"')),
    quoted("results.md", "entry-point groups", ("tuneoff.adapters", "tuneoff.workloads", "tuneoff.commands")),
    Facts("results.md", "format versions", (f"| `end.json`, `run.json` (`format_version`) | {model.FORMAT_VERSION} |",)),
    Facts("results.md", "event version", (f"| event files (`version` of `process`) | {schema.SCHEMA_VERSION} |",)),
    quoted("experiments.md", "keys", schema_keys()),
    quoted("experiments.md", "samplers and pruners", (*SAMPLERS, *PRUNERS, *syne.CLASSES, *katib.CAPABILITIES.samplers)),
    quoted("experiments.md", "options", option_names()),
    Facts("experiments.md", "defaults", tuple(f"| `{name}` | {text}" for name, text in DEFAULTS)),
    quoted("adapters.md", "methods for ask and tell", ask_tell_methods()),
    Facts("adapters.md", "code for ask and tell", tuple(code_for_ask_and_tell())),
    quoted("adapters.md", "the retry helper", (signature("Retries", Retries), signature("may_retry", Retries.may_retry))),
    Facts("adapters.md", "settings of the contract tests", tuple(f"`{name}" for name in AdapterContract.__annotations__)),
    quoted("katib.md", "options", (option.name for option in fields(KatibOptions))),
    Facts("katib.md", "defaults", tuple(f"| `{name}` | {value} |" for name, value in katib_defaults())),
    *(Facts(page, "number of checks", (f" {len(CHECKS)} checks",)) for page in ("conformance.md", "../README.md")),
    Facts("katib.md", "places", (katib_layout.POD_MODULE, katib_layout.DATA_DIR, "katib_emulation")),
]
IDS = [f"{facts.page}: {facts.what}" for facts in FACTS]


@pytest.mark.parametrize("facts", FACTS, ids=IDS)
def test_what_the_code_has_stands_on_its_page(facts: Facts) -> None:
    assert facts.texts
    assert facts.missing_in((DOCS / facts.page).read_text()) == []


def test_a_page_that_lacks_something_is_found() -> None:
    facts = FACTS[0]
    lacking = facts.texts[-1]
    assert lacking in facts.missing_in((DOCS / facts.page).read_text().replace(lacking, ""))


# --- links ---


def broken_links(text: str, page: Path) -> list[str]:
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
    assert len(found) == 7
    for example in found:
        if "configurations" in example and "include" not in example:
            example = {**example, "budget": {"epochs_per_trial": 3}}
        load(example, tmp_path)


def test_an_example_with_a_wrong_key_is_found(tmp_path: Path) -> None:
    (example,) = examples("    bugdet: {trials: 3}\n")
    with pytest.raises(Exception, match="unknown key 'bugdet'"):
        load(example, tmp_path)


# --- commands ---


def unknown_commands(text: str, page: Path) -> list[str]:
    """Return the commands of tuneoff that a page names and that do not exist."""
    known = {command.NAME for command in all_commands()}
    return [name for name in re.findall(r"(?:`|^    )tuneoff ([a-z][a-z-]*)", text, flags=re.MULTILINE) if name not in known]


@functools.cache
def all_arguments() -> argparse.ArgumentParser:
    return build_parser(all_commands(), "", "", "")


def wrong_calls(text: str, page: Path) -> list[str]:
    """Return the lines of code of a page that call tuneoff in a way that its parser refuses."""
    fenced = "".join(re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    code = "\n".join([*fenced.splitlines(), *re.findall(r"^    (\S.*)$", text.replace("\\\n", " "), flags=re.MULTILINE)])
    parser = all_arguments()
    wrong = []
    for line in re.findall(r"^(tuneoff [a-z].*)$", code, flags=re.MULTILINE):
        arguments = shlex.split(re.split(r" +# ", line)[0].partition(" > ")[0].replace("...", ""))[1:]
        try:
            parser.parse_args(arguments)
        except SystemExit:
            wrong.append(line)
    return wrong


def wrong_commands(text: str, page: Path) -> list[str]:
    """Return the commands of a page, in code or in its text, that do not plan their file, or that give pip what is not ours.

    Files that a reader is to write (own.yaml, FILE) are left out, and so is whatever needs results.
    """
    found = []
    for one in printed(text):
        words = one.split()
        files = [word for word in words if word.endswith(".yaml")]
        is_plan = (
            words[:2] in (["tuneoff", name] for name in STARTS) and files and all((REPOSITORY / name).exists() for name in files)
        )
        if is_plan or (words[:2] == ["pip", "install"] and "..." not in words and not set(words) & OF_A_READER):
            found.append(one)
    with contextlib.chdir(REPOSITORY):
        return problems(found)


# --- names of Python ---


def unknown_names(text: str, page: Path) -> list[str]:
    """Return the dotted names of tuneoff's packages that cannot be imported."""
    named = re.findall(r"(?<![\w/.\"-])(?:tuneoff|tuneoff_\w+|katib_emulation)(?:\.\w+)+(?![\w/\"])", text)
    return [name for name in dict.fromkeys(named) if name not in NOT_MODULES and not can_be_had(name)]


def can_be_had(dotted: str) -> bool:
    """Tell whether a dotted name is a module, or something in one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            item: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            item = getattr(item, part, None)
        return item is not None
    return False


# --- each page ---

WRONG: Mapping[Callable[[str, Path], list[str]], tuple[str, list[str]]] = {  # with a text of which some things are wrong
    broken_links: (
        "# One heading\n[a](nowhere.md) [b](metrics.md#no-such-heading) [c](#one-heading) [d](#two) [e](https://example.org/x)",
        ["nowhere.md", "metrics.md#no-such-heading", "#two"],
    ),
    unknown_commands: ("`tuneoff plan FILE`, `tuneoff prove DIR`\n    tuneoff bench x\n", ["prove", "bench"]),
    wrong_calls: (
        "    tuneoff plan x.yaml --adapter serial\n    tuneoff plan x.yaml --adapters serial  # wrong\n",
        ["tuneoff plan x.yaml --adapters serial  # wrong"],
    ),
    wrong_commands: (
        "    tuneoff plan benchmarks/digits.yaml --adapter optuna  # right\n    tuneoff run benchmarks/mnist.yaml --trials 0\n"
        "Run `pip install 'tuneoff[report]'`, or `pip install jinja2`.",
        [
            "tuneoff run benchmarks/mnist.yaml --trials 0: --trials: must be at least 1, but got 0",
            "pip install 'tuneoff[report]': tuneoff[report] is not a dependency of the project",
        ],
    ),
    unknown_names: ("`tuneoff.load`, `tuneoff.power.meter.Meter`, `tuneoff.adapters`", ["tuneoff.power.meter.Meter"]),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_nothing_on_a_page_is_wrong(page: Path, wrong: Callable[[str, Path], list[str]]) -> None:
    assert wrong(page.read_text(), page) == []


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_found(wrong: Callable[[str, Path], list[str]]) -> None:
    text, found = WRONG[wrong]
    assert wrong(text, DOCS / "results.md") == found
