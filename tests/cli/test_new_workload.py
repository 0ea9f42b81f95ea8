"""`new-workload`: what it writes runs as it is, and is compared by real frameworks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import Call
from tuneoff.cli.new_workload import LIKE

PRELOADING = {"sklearn", "torch"}  # each process imports for seconds: compared by one framework, as the others are by two
OF_A_PACKAGE = {"README.md", "pyproject.toml", "my-own.yaml", "src/my_own.py", "tests/test_workload.py"}


@pytest.fixture
def folder(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, like: str) -> Path:
    """Write a training like `like` as a file, and return its folder, which is the current one."""
    answer = call("new-workload", "my-own", "--like", like, "--file")
    assert (answer.code, answer.err) == (0, "")
    monkeypatch.chdir("my-own")
    monkeypatch.delitem(sys.modules, "my_own", raising=False)
    monkeypatch.syspath_prepend(Path.cwd())
    return tmp_path / "my-own"


@pytest.mark.parametrize("like", LIKE)
def test_a_file_and_its_experiment_are_written_whole(call: Call, folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"my_own.py", "my-own.yaml"}
    assert not any("@" in line for path in folder.glob("*.yaml") for line in path.read_text().splitlines())
    assert call("plan", "my-own.yaml", "--adapter", "serial").code == 0


@pytest.mark.parametrize("like", ["sklearn", "torch"])
def test_the_dimensions_that_are_commented_out_work_too(call: Call, folder: Path) -> None:
    path = folder / "my_own.py"
    text = re.sub(r'# (".*\),)$', r"\1", path.read_text(), flags=re.MULTILINE)
    path.write_text(text.replace("import Float,", "import Categorical, Float, stepped,"))
    answer = call("plan", "my-own.yaml", "--adapter", "serial", "--json")
    (space, *_) = (run["spec"]["experiment"]["search_space"] for run in json.loads(answer.out)["runs"])
    kinds = [dimension["type"] for dimension in space["dimensions"]]
    assert kinds == ["float", "int_log", "stepped", "categorical"]


def test_a_package_has_an_entry_point_and_a_test(call: Call, tmp_path: Path) -> None:
    assert call("new-workload", "my-own", "--like", "torch").code == 0
    folder = tmp_path / "my-own"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == OF_A_PACKAGE
    text = (folder / "pyproject.toml").read_text()
    assert 'my-own = "my_own:MyOwn"' in text
    assert '"torch"' in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, "a training's name must be") for name in ("My-Own", "my_own", "1st", "")),
        *((name, "choose another name") for name in ("json", "pytest", "command")),
    ],
)
def test_a_name_that_makes_no_module_or_something_else_has_is_one_line(call: Call, name: str, words: str) -> None:
    answer = call("new-workload", name)
    assert answer.code == 2
    assert words in answer.line


def tuneoff(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tuneoff", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow(first=True)
@pytest.mark.parametrize("like", LIKE)
def test_what_is_written_conforms_and_is_compared(call: Call, folder: Path, like: str) -> None:
    with Path("my-own.yaml").open("a") as file:
        file.write("warm_up: false\n")
    checked = tuneoff(folder, "check", "--workload", "my-own.yaml", "--json")
    assert json.loads(checked.stdout)["exit_code"] == 0, checked.stdout
    adapters = ["optuna"] if like in PRELOADING else ["serial", "optuna"]
    few = ["--trials", "2", "--workers", "1", "--seeds", "0", "--adapter", *adapters, "--json"]
    compared = tuneoff(folder, "compare", "my-own.yaml", *few)
    assert [run["status"] for run in json.loads(compared.stdout)["runs"]] == ["done"] * len(adapters), compared.stderr
    (results,) = (folder / "results").iterdir()
    records = [json.loads(path.read_text()) for path in results.glob("runs/*/*/run.json")]
    tested = [record["metrics"]["quality.test"]["value"] for record in records]
    assert [value is not None for value in tested] == [like in PRELOADING] * len(adapters)
    questions = json.loads(call("report", "--json").out)["questions"]
    quality = next(question["metric"] for question in questions if question["name"] == "quality")
    assert quality == ("quality.test" if like in PRELOADING else "quality.validation")
