"""Completion as a shell asks for it: commands, options, choices, names of plugins, paths; and that no framework is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Call
from tuneoff import registry
from tuneoff.cli.main import COMPLETION, all_commands

ADAPTERS = {plugin.name for plugin in registry.scan("adapter")}
WORKLOADS = {plugin.name for plugin in registry.scan("workload")}


def completed(line: str, folder: Path, *flags: str) -> set[str]:
    """Return what may follow `line`, as bash asks for it in `folder`."""
    answer = folder / ".answer"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, *flags, "-m", "tuneoff"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=not flags)
    return set(answer.read_text().split("\n")) - {""}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tuneoff ", {command.NAME for command in all_commands()}),
        ("tuneoff com", {"compare"}),
        ("tuneoff compare --ad", {"--adapter"}),
        ("tuneoff --debug compare one.yaml --tri", {"--trials"}),
        ("tuneoff compare --adapter ", ADAPTERS),
        ("tuneoff compare one.yaml --adapter serial,opt", {"serial,optuna"}),
        ("tuneoff run one.yaml --adapter=opt", {"--adapter=optuna"}),
        ("tuneoff check serial opt", {"optuna"}),
        ("tuneoff list adapters ", ADAPTERS),
        ("tuneoff list workloads ", WORKLOADS),
        ("tuneoff export --format ", {"csv", "json", "parquet"}),
        ("tuneoff check --json --mark", set()),  # exclusive
        ("tuneoff compare ", {"one.yaml", "results/"}),
        ("tuneoff check --workload o", {"one.yaml"}),
        ("tuneoff report r", {"results/"}),
        ("tuneoff report results/", {"results/digits-1/", "results/digits-2/"}),
        ("tuneoff report --faults o", {"one.yaml", "other.txt"}),
    ],
)
def test_a_line_is_completed(line: str, expected: set[str], tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / "results" / f"digits-{number}").mkdir(parents=True)
    for name in ("one.yaml", "other.txt"):
        (tmp_path / name).touch()
    assert completed(line, tmp_path) == expected


def test_to_complete_names_imports_no_plugin(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert completed("tuneoff check opt", tmp_path, "-X", "importtime") == {"optuna"}
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in capfd.readouterr().err.splitlines()}
    assert "argcomplete" in imported
    assert imported & {"tuneoff_adapters", "tuneoff_workloads", "optuna", "ray", "numpy", "torch", "pydantic", "yaml"} == set()


def test_without_a_shell_that_asks_nothing_of_it_is_imported() -> None:
    code = "from tuneoff.cli.main import main; main(['--version']); import sys; sys.exit('argcomplete' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_line_that_sets_it_up_is_told(call: Call) -> None:
    assert COMPLETION in call("--help").out
    assert f"`{COMPLETION}`" in (Path(__file__).parents[2] / "docs" / "README.md").read_text()
