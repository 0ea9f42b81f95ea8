"""`new-adapter`: the package that it writes works as it is, without a change in tuneoff."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.build import build_editable

from command_line import Call
from contract.few_runs import FRAMEWORK
from tuneoff.cli.new_adapter import LIKE
from tuneoff.cli.new_workload import TEMPLATES
from tuneoff.trust.check.checks import CHECKS

REPOSITORY = Path(__file__).parents[2]
RUNS = FRAMEWORK | {"random-1-workers-1", "random-2-workers-1", "other-seed"}  # as of every adapter, and that its seeds differ
CHECKED = [check.id for check in CHECKS if RUNS.issuperset(check.reads)]
FILES = {
    "README.md",
    "experiment.yaml",
    "pyproject.toml",
    "src/tuneoff_my_own/__init__.py",
    "src/tuneoff_my_own/adapter.py",
    "tests/test_adapter.py",
    "tests/test_contract.py",
}


@pytest.mark.parametrize("like", LIKE)
def test_the_package_is_written_whole(call: Call, tmp_path: Path, like: str) -> None:
    answer = call("new-adapter", "my-own", "--like", like)
    assert (answer.code, answer.err) == (0, "")
    folder = tmp_path / "tuneoff-my-own"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == FILES
    for name in FILES:
        text = (folder / name).read_text()
        assert "@NAME@" not in text
        assert "@CLASS@" not in text
        assert "@MODULE@" not in text
        if name.endswith(".py"):
            compile(text, name, "exec")
    assert 'my-own = "tuneoff_my_own:MyOwnAdapter"' in (folder / "pyproject.toml").read_text()


@pytest.mark.parametrize("command", ["new-adapter", "new-workload"])
def test_hatchling_alone_installs_the_package_for_editing(call: Call, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """As `pip install --no-build-isolation -e` does it, without a network."""
    assert call(command, "my-own", "--output", "package").code == 0
    monkeypatch.setitem(sys.modules, "editables", None)  # what hatchling else needs for it
    monkeypatch.chdir("package")
    wheel = zipfile.ZipFile(build_editable("."))
    (links,) = [name for name in wheel.namelist() if name.endswith(".pth")]
    assert wheel.read(links).decode().split() == [str(Path.cwd() / "src")]
    assert "pip install --no-build-isolation -e ." in Path("README.md").read_text()


def test_a_name_that_makes_no_package_or_is_taken_is_one_line(call: Call, fakes: None) -> None:
    for name in ("My-Own", "my_own", "1st", "-x", "x-", "a--b", "", "ähnlich"):
        answer = call("new-adapter", "--", name)
        assert (answer.code, "an adapter's name must be" in answer.line) == (2, True), name
    assert not list(Path.cwd().iterdir())
    answer = call("new-adapter", "plain")
    assert (answer.code, "'plain' is installed already; choose another name" in answer.line) == (2, True)


@pytest.mark.parametrize("command", ["new-adapter", "new-workload"])
def test_files_are_never_written_over(call: Call, tmp_path: Path, command: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    answer = call(command, "my-own", "--output", "mine")
    assert answer.code == 5
    assert "must be a new or empty folder" in answer.line
    assert call(command, "my-own", "--output", "mine/letter.txt").code == 5


def test_the_templates_belong_to_the_package() -> None:
    assert TEMPLATES.is_relative_to(REPOSITORY / "core" / "tuneoff")
    assert {path.name for path in TEMPLATES.rglob("*") if path.is_file() and path.suffix != ".tmpl"} == set()


@pytest.mark.slow(first=True)
def test_the_installed_package_passes_its_own_test_and_takes_part_in_a_matrix(call: Call, tmp_path: Path) -> None:
    package = tmp_path / "package"
    assert call("new-adapter", "my-own", "--output", package).code == 0
    python = str(_environment(tmp_path / "venv", package))

    # of the contract the checks that need two runs; all of it takes a minute
    some = ["-k", "not conforms or configurations or refusal or budget.epochs"]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(package), *some]
    own = subprocess.run(command, capture_output=True, text=True)
    assert own.returncode == 0, own.stdout + own.stderr
    assert "passed" in own.stdout

    matrix = tmp_path / "matrix.yaml"
    matrix.write_text((package / "experiment.yaml").read_text().replace("[my-own]", "[serial, my-own]"))
    comparison = [python, "-m", "tuneoff", "compare", "--no-report", str(matrix), "--output", str(tmp_path / "results"), "--json"]
    compared = subprocess.run(comparison, capture_output=True, text=True)
    assert compared.returncode == 0, compared.stderr
    assert {run["label"]: run["status"] for run in json.loads(compared.stdout)["runs"]} == {"serial": "done", "my-own": "done"}


@pytest.mark.slow(first=True)
@pytest.mark.timeout(900)
def test_an_adapter_that_runs_its_trials_itself_conforms(call: Call, tmp_path: Path) -> None:
    assert call("new-adapter", "my-own", "--like", "runs-trials", "--output", tmp_path / "package").code == 0
    command = [str(_script(sys.executable)), "check", "tuneoff_my_own:MyOwnAdapter", "--only", *CHECKED, "--json"]
    checked = subprocess.run(command, cwd=tmp_path / "package" / "src", capture_output=True, text=True)
    (report,) = json.loads(checked.stdout)["adapters"]
    assert [one for one in report["checks"] if one["verdict"] == "failed"] == []
    assert (checked.returncode, len(report["checks"])) == (0, len(CHECKED))
    not_tested = [one["id"] for one in report["checks"] if one["verdict"] not in ("passed", "failed")]
    assert set(not_tested) <= {"limits.processors", "configurations.first"}  # the latter it does not offer


def _environment(folder: Path, package: Path) -> Path:
    """Make a virtual environment that has everything of this one, and `package` installed by pip; return its Python."""
    venv.create(folder, symlinks=True, with_pip=False)
    python = folder / "bin" / "python"
    (site,) = (folder / "lib").glob("python*/site-packages")
    here = [path for path in sys.path if path.endswith("site-packages")]
    # like a .pth file of this environment: its own .pth files (an editable tuneoff) are read too
    (site / "parent.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in here))
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--disable-pip-version-check",
        str(package),
    ]
    environment = {**os.environ, "PIP_NO_INDEX": "1"}
    installed = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert installed.returncode == 0, installed.stderr
    return python


def _script(python: str) -> Path:
    """Return the installed command, which does not have the current folder on its path."""
    script = Path(python).parent / "tuneoff"
    if not script.exists():
        pytest.skip("tuneoff's command is not installed beside this Python")
    return script
