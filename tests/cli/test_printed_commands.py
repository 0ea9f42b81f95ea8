"""Every command that is printed can be pasted as it is, whatever the command line replaced and wherever the files lie.

Results folders are made by hand from real plans. What is cheap is run, of the rest the plan is made; pip's names are compared.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from builders.page_folders import Change, failed, never, record
from builders.stored import write_run
from command_line import Call
from printed_commands import CHEAP, COMMANDS, on_page, outside_code, printed, problems
from tuneoff.base.commands import install_command, is_command, split_command
from tuneoff.base.layout import PLAN, RUNS
from tuneoff.cli import run as run_command
from tuneoff.cli.command import build_parser
from tuneoff.cli.matrix import ending_text
from tuneoff.cli.selection import plan_of
from tuneoff.experiment.plan import UNPACKED
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.results import read_results
from tuneoff.record.run_record import FlagRecord, RunRecord

pytestmark = pytest.mark.slow(first=True)

SEVERAL: Mapping[str, Any] = {
    "workload": "null",
    "adapters": ["serial", "optuna", {"name": "syne-tune"}],
    "sampler": "random",
    "budget": {"trials": 4, "epochs_per_trial": 2},
    "workers": {"count": 2},
    "seeds": {"count": 3},
}


def disturbed(run: RunRecord) -> RunRecord:
    return replace(run, flags=(FlagRecord(name="disturbed", text="planted"),))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A command that was run, and what its runs came to by their place."""

    words: Sequence[str]
    file: str = "several.yaml"
    changes: Mapping[int, Change] = field(default_factory=dict)
    content: Mapping[str, Any] = field(default_factory=dict)
    folder: str = "results/several-1"


ALL_DISTURBED = dict.fromkeys(range(9), disturbed)
CASES = {
    "replaced": Case(
        words=["compare", "--adapter", "serial,optuna", "--trials", "3", "--seeds", "4", "2"], changes=ALL_DISTURBED
    ),
    "blanks": Case(
        words=["compare", "--trials", "3"], changes=ALL_DISTURBED, file="my files/it's one.yaml", folder="my results/a  b"
    ),
    "run of several seeds": Case(words=["run", "--adapter", "optuna"], changes=ALL_DISTURBED),
    "run of one seed": Case(words=["run", "--adapter", "optuna", "--seed", "2", "--sampler", "tpe"], changes=ALL_DISTURBED),
    "interrupted": Case(words=["compare", "--trials", "5"], changes=dict.fromkeys(range(4, 9), never)),
    "failed": Case(words=["compare"], changes=dict.fromkeys(range(0, 9, 3), failed("failed", "planted"))),
    "pruned": Case(words=["compare"], content={"pruner": "asha", "budget": {"trials": 4, "epochs_per_trial": 9}}),
}


def made(case: Case) -> Path:
    """Write the file and the results folder of a case into the current folder, and return the latter."""
    file, results = Path(case.file), Path(case.folder)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**SEVERAL, **case.content}))
    name, *options = case.words
    parsed = build_parser(COMMANDS, "", "", "").parse_args([name, str(file), *options])
    plan = run_command.planned(parsed) if name == "run" else plan_of(parsed)
    results.mkdir(parents=True)
    (results / PLAN).write_text(json.dumps(plan.to_json()))
    for place, planned in enumerate(run for run in plan.counted if run.skip_reason is None):
        one: RunRecord | None = record(planned.spec, place)
        one = case.changes[place](one) if one is not None and place in case.changes else one
        if one is not None:
            folder = results / RUNS / planned.run_id / one.execution_id
            folder.mkdir(parents=True)
            write_run(folder, one)
    return results


@pytest.fixture
def outputs(call: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[[Case], tuple[str, str]]:
    """Return a function that makes a case and returns what commands print of it on a narrow terminal, and its page."""

    def shown(case: Case) -> tuple[str, str]:
        results = made(case)
        page = Path(call("report", results).out.strip()).read_text()
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", "44")
        monkeypatch.setenv("NO_COLOR", "1")
        texts = [ending_text(choose(answers(read_results(results))))]
        for words in map(str.split, READING):
            answer = call(*words, results)
            assert "Traceback" not in answer.err
            texts += [answer.out, answer.err]
        monkeypatch.setattr("sys.stdout.isatty", lambda: False)
        return "\n".join(texts), page

    return shown


READING = (
    *("watch --runs", "watch --once", "watch --tables"),
    *("report --text", "report --text --must-retry", "check --controls"),
)
FAST = ("replaced", "blanks", "run of several seeds", "interrupted")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in FAST else pytest.mark.slow) for name in CASES])
def test_what_is_printed_of_a_results_folder_can_be_pasted(
    call: Call, outputs: Callable[[Case], tuple[str, str]], name: str
) -> None:
    case = CASES[name]
    text, page = outputs(case)
    commands = [*printed(text), *on_page(page)]
    assert " \\\n" in text or "'" in text  # it was narrow
    assert outside_code(page) == []
    assert problems(commands) == []
    assert any("verify" in one for one in commands)
    hints = [shlex.split(one) for one in commands if " compare " in one or " run " in one]
    given = {word for word in case.words if word.startswith("--")}
    for words in hints:
        added = {word for word in words if word.startswith("--")} - given - {"--resume", "--retry", "--output"}
        assert added <= {"--seeds", "--adapter"}, words  # P4: no `--trials 4 --workers 2` that the file has
    if case.changes is ALL_DISTURBED:
        assert any(words[-2:] == ["--output", case.folder] and case.words[0] in words for words in hints)
    for one in commands:
        words = shlex.split(one)
        if words[0] == "tuneoff" and (words[1] in CHEAP or {"--controls", "--runs"} & set(words)):
            assert call(*words[1:]).code in (0, 1, 4), one  # 4: made by hand, so it is not what its events give


@pytest.mark.parametrize("seed", [0, 4])
def test_the_seed_that_is_asked_for_is_run(call: Call, seed: int) -> None:
    Path("several.yaml").write_text(json.dumps({**SEVERAL, "seeds": [3, 4]}))
    words = ["run", "several.yaml", "--adapter", "serial", "--seed", str(seed)]
    assert run_command.planned(build_parser(COMMANDS, "", "", "").parse_args(words)).seeds == (seed,)


def test_of_a_reproduced_folder_only_the_bundle_is_run_again(call: Call) -> None:
    results = made(Case(words=["compare", "--seeds", "0"], changes={**ALL_DISTURBED, 2: never}))
    plan = json.loads((results / PLAN).read_text())
    content = {"reproduces": plan["plan_id"], "bundle_sha256": "0" * 64}
    (results / PLAN).write_text(json.dumps({**plan, "path": "results/several.tar.gz", "content": content}))
    words = (("report", "--text"), ("report", "--text", "--must-retry"), ("watch", "--once"))
    outputs = [call(*one, results) for one in words]
    commands = [one for answer in outputs for text in (answer.out, answer.err) for one in printed(text)]
    assert [one for one in commands if shlex.split(one)[1] in ("compare", "run")] == []
    assert "tuneoff reproduce results/several.tar.gz" in commands


def test_in_an_unpacked_bundle_the_file_is_the_one_beside_the_results(call: Call) -> None:
    results = made(Case(words=["compare", "--seeds", "0"]))
    for name in UNPACKED:
        shutil.copy("several.yaml", results.parent / name)
    Path("several.yaml").unlink()
    commands = printed(call("report", "--text", results).out)
    (compare,) = [words for words in map(shlex.split, commands) if words[1] == "compare"]
    assert Path(compare[2]) == (results.parent / UNPACKED[1]).absolute()


def test_nothing_is_recommended_that_the_plan_refuses(call: Call) -> None:
    """nevergrad has no pruner but none: its runs would all be skipped."""
    pytest.importorskip("nevergrad")
    made(
        replace(
            CASES["pruned"], content={"matrix": {"pruner": ["asha", "median"]}, "budget": {"trials": 4, "epochs_per_trial": 9}}
        )
    )
    filters = json.loads(call("report", "--must-retry", "--json").out)["filters"]
    refusals = filters["left_out"]["nevergrad"]
    text = "adapter 'nevergrad' does not list pruner 'asha'; it offers: none, scripted"
    assert {"kind": "not with the file", "reason": text} in refusals
    (advice,) = filters["how_to_measure"]
    assert "nevergrad" not in advice
    assert "ray-tune" in advice
    assert advice.endswith("--seeds 0-9")  # three would decide nothing
    made(Case(words=["compare"], folder="results/random"))
    (advice,) = json.loads(call("report", "results/random", "--must-retry", "--json").out)["filters"]["how_to_measure"]
    assert "nevergrad" in advice


def test_a_wrong_command_is_found(call: Call) -> None:
    made(CASES["replaced"])
    for line, problem in (
        ("tuneoff compare several.yaml --trials 4 --resume --retry flagged --output results/several-1", "another plan"),
        ("tuneoff run several.yaml --adapter serial --resume --output results/several-1", "another plan"),
        ("tuneoff compare nowhere.yaml --seeds 0 1", "cannot be read"),
        ("tuneoff check --controls several-1", "not a results folder"),
        ("tuneoff compare several.yaml --adapters serial", "the parser refuses it"),
        ("tuneoff compare my files/it's one.yaml", "no shell takes it"),
        ("pip install 'tuneoff[report]'", "tuneoff[report] is not a dependency"),
        ("pip install '.[nothing]'", "there is no extra nothing"),
        ("cd nowhere && tuneoff plan several.yaml", "nowhere is not a folder"),
    ):
        assert any(problem in one for one in problems(printed(f"to go on: {line}"))), line


def test_a_command_is_found_wherever_it_stands() -> None:
    text = (
        "see tuneoff check --controls for it\n  tuneoff compare \\\n    'a b.yaml' --seeds 1\nrun `tuneoff plan x.yaml`, or not"
    )
    assert printed(text) == ["tuneoff check --controls for it", "tuneoff compare 'a b.yaml' --seeds 1", "tuneoff plan x.yaml"]
    assert on_page('<code><span class="word">tuneoff</span> <span class="word">plan</span> a&amp;b</code>') == [
        "tuneoff plan a&b"
    ]
    assert outside_code("<p>To decide: tuneoff plan x.yaml</p><code>tuneoff plan y</code>") == ["tuneoff plan x.yaml"]


def test_a_command_ends_its_line() -> None:
    for text, command in (
        ("to go on: ", "tuneoff compare x.yaml"),
        ("to go on: ", ".venv/bin/tuneoff compare 'a: b.yaml'"),
        ("to go on: ", "'/my dir/tuneoff' compare x.yaml"),
        ("x is missing; run: ", "pip install 'a<2,>=1' b"),
        ("an archive: tuneoff made it, and others read it", ""),
        ("the work of tuneoff itself: 3 s", ""),
    ):
        assert (split_command(f"{text}{command}")[1], is_command(command)) == (command, bool(command))


OPTIONAL_MODULES = [
    "optuna",
    "ray",
    "syne_tune",
    "nevergrad",
    "rustuna",
    "kubeflow",
    "kubernetes",
    "torch",
    "sklearn",
    "optunahub",
]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an installation without any extra."""
    import tuneoff.base.packages as packages

    found = packages.module_exists
    for module in [one for name, one in sys.modules.items() if name.startswith(("tuneoff", "tuneoff_"))]:
        if hasattr(module, "module_exists"):
            monkeypatch.setattr(module, "module_exists", lambda name: name.split(".")[0] not in OPTIONAL_MODULES and found(name))
        if hasattr(module, "installed_version"):
            monkeypatch.setattr(module, "installed_version", lambda name: None)


@pytest.mark.parametrize(
    ("words", "least"),
    [("doctor", 5), ("list adapters", 5), ("list adapters syne-tune", 1), ("list workloads", 1), ("plan several.yaml", 1)],
)
def test_without_extras_what_is_missing_can_be_installed(call: Call, bare: None, words: str, least: int) -> None:
    Path("several.yaml").write_text(json.dumps(SEVERAL))
    commands = [one for one in printed(call(*words.split()).out) if "install" in one]
    assert len(commands) >= least
    assert problems(commands) == []


def test_an_extra_stands_for_its_libraries() -> None:
    assert install_command("tuneoff[redis]") == "pip install 'redis>=5'"
    assert install_command("tuneoff[optuna,ray]").count("cmaes") == 1
    assert install_command("sklearn") == "pip install scikit-learn"
    assert install_command("tuneoff[nothing]") == "pip install '.[nothing]'"
    names = {re.split(r"[^\w.-]", one)[0] for one in importlib.metadata.requires("tuneoff") or ()}
    assert "tuneoff" not in names


@pytest.mark.parametrize(
    "words",
    [
        ["new-workload", "my-own", "--output", "my own"],
        ["new-workload", "my-own", "--like", "sklearn", "--file"],
        ["new-adapter", "my-own", "--output", "my own"],
    ],
)
def test_what_a_template_says_can_be_pasted(call: Call, monkeypatch: pytest.MonkeyPatch, words: Sequence[str]) -> None:
    from tuneoff.registry import Plugin, scan

    answer = call(*words)
    folder = Path(words[-1] if "--output" in words else "my-own")
    files = {path: path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert "pypi.org" not in "".join(files.values())
    assert not re.search(r"^dependencies = .*\"tuneoff", "".join(files.values()), re.MULTILINE)
    commands = printed(answer.out)
    assert "  cd " in answer.out or "  pip install -e " in answer.out
    assert not any(one.startswith("pip install -e ") and "tuneoff" in one for one in commands if "new-workload" in words)
    assert problems([one for one in commands if not one.startswith("tuneoff c")]) == []
    known = scan("adapter"), scan("workload")
    for path, text in files.items():
        if path.name in ("README.md", "my-own.yaml"):
            with monkeypatch.context() as patch:
                patch.chdir(folder)
                patch.syspath_prepend(folder)
                patch.setattr(
                    "tuneoff.registry.scan",
                    lambda kind: (
                        scan(kind) if kind == "platform" else (*known[kind == "workload"], Plugin(name="my-own", target=""))
                    ),
                )
                found = [one for one in printed(text) if not one.startswith(("tuneoff compare", "tuneoff run", "tuneoff check"))]
                assert problems(found) == []


SCRIPT = Path(sys.executable).with_name("tuneoff")


def pasted(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Give a line to a shell, in the current folder, which finds `tuneoff` in PATH."""
    given = {**os.environ, "PATH": f"{SCRIPT.parent}:{os.environ['PATH']}", **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=250, env=given, check=False)


@pytest.mark.skipif(not SCRIPT.exists(), reason="the tests' interpreter has no command tuneoff beside it")
def test_the_program_is_named_as_it_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own bin").symlink_to(SCRIPT.parent)
    for called in ("tuneoff", "'own bin/tuneoff'", f"{shlex.quote(sys.executable)} -m tuneoff"):
        path = f"{SCRIPT.parent}:/usr/bin:/bin" if called == "tuneoff" else "/usr/bin:/bin"
        assert pasted(f"{called} watch --runs", PATH=path).stderr.strip().endswith(f"; name one, or run: {called} compare FILE")
