"""Completion as a shell asks for it: commands, options, choices, names of plugins, paths; and that no framework is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from command_line import Call
from tuneoff import registry
from tuneoff.cli.main import COMPLETION, all_commands

pytestmark = pytest.mark.slow

ADAPTERS = {plugin.name for plugin in registry.scan("adapter")}
WORKLOADS = {plugin.name for plugin in registry.scan("workload")}


LINES: Mapping[str, set[str]] = {
    "tuneoff ": {command.NAME for command in all_commands()},
    "tuneoff com": {"compare"},
    "tuneoff compare --ad": {"--adapter"},
    "tuneoff --debug compare one.yaml --tri": {"--trials"},
    "tuneoff compare --adapter ": ADAPTERS,
    "tuneoff compare one.yaml --adapter serial,opt": {"serial,optuna"},
    "tuneoff run one.yaml --adapter=opt": {"--adapter=optuna"},
    "tuneoff check serial opt": {"optuna"},
    "tuneoff list adapters ": ADAPTERS,
    "tuneoff list workloads ": WORKLOADS,
    "tuneoff export --format ": {"csv", "json", "parquet"},
    "tuneoff check --json --mark": set(),  # exclusive
    "tuneoff compare ": {"one.yaml", "results/"},
    "tuneoff check --workload o": {"one.yaml"},
    "tuneoff report r": {"results/"},
    "tuneoff report results/": {"results/digits-1/", "results/digits-2/"},
    "tuneoff report --faults o": {"one.yaml", "other.txt"},
}


def asking(line: str, answer: Path) -> dict[str, str]:
    """Return the variables by which bash asks what may follow `line`."""
    return {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }


def answered(answer: Path) -> set[str]:
    return set(answer.read_text().split("\n")) - {""}


EACH_IN_A_FORK = """
import json, os, sys
from tuneoff.cli.main import main
for variables in json.load(sys.stdin):
    if not (child := os.fork()):
        os.environ.update(variables)
        sys.exit(main([]))
    os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def completions(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, set[str]]:
    """What may follow each line, in a folder with files and results."""
    folder, answers = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("answers")
    for number in (1, 2):
        (folder / "results" / f"digits-{number}").mkdir(parents=True)
    for name in ("one.yaml", "other.txt"):
        (folder / name).touch()
    questions = [asking(line, answers / str(number)) for number, line in enumerate(LINES)]
    command = [sys.executable, "-c", EACH_IN_A_FORK]
    subprocess.run(command, cwd=folder, input=json.dumps(questions), text=True, check=True, capture_output=True)
    return {line: answered(answers / str(number)) for number, line in enumerate(LINES)}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_completed(line: str, completions: Mapping[str, set[str]]) -> None:
    assert completions[line] == LINES[line]


def test_to_complete_names_imports_no_plugin(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    answer = tmp_path / "answer"
    environment = {**os.environ, **asking("tuneoff check opt", answer)}
    subprocess.run([sys.executable, "-X", "importtime", "-m", "tuneoff"], env=environment, check=True)
    assert answered(answer) == {"optuna"}
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in capfd.readouterr().err.splitlines()}
    assert "argcomplete" in imported
    assert imported & {"tuneoff_adapters", "tuneoff_workloads", "optuna", "ray", "numpy", "torch", "pydantic", "yaml"} == set()


def test_without_a_shell_that_asks_nothing_of_it_is_imported() -> None:
    code = "from tuneoff.cli.main import main; main(['--version']); import sys; sys.exit('argcomplete' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_line_that_sets_it_up_is_told(call: Call) -> None:
    assert COMPLETION in call("--help").out
    assert f"`{COMPLETION}`" in (Path(__file__).parents[2] / "docs" / "README.md").read_text()
