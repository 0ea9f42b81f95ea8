"""The templates travel with the package, and so do the experiments that need nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]


EMULATION = REPOSITORY / "adapters" / "katib_emulation"  # a distribution of its own


def built(project: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=120)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(REPOSITORY, tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_the_emulation_of_katib_is_in_its_own_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    own = {f"katib_emulation/{path.name}" for path in EMULATION.iterdir() if path.is_file() and path.name != "pyproject.toml"}
    assert {"katib_emulation/server.py", "katib_emulation/py.typed"} <= own
    packed = {name for name in zipfile.ZipFile(built(EMULATION, tmp_path)).namelist() if ".dist-info/" not in name}
    assert packed == own
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "katib_emulation" in name]


@pytest.mark.slow
def test_a_built_wheel_has_every_template_and_every_page(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    own = {f"tuneoff/tell/page/templates/{path.name}" for path in (files("tuneoff.tell.page") / "templates").iterdir()}
    assert len(own) >= 9
    assert {*own, "tuneoff/judge/warnings.toml"} <= packed
    assert {f"tuneoff/docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")} <= packed  # `tuneoff explain docs/...`
    assert not [name for name in packed if name.startswith("docs/") or "example_report" in name]
    (metadata,) = [name for name in packed if name.endswith(".dist-info/METADATA")]
    needed = [line for line in zipfile.ZipFile(wheel).read(metadata).decode().splitlines() if line.startswith("Requires-Dist")]
    plain = {line.split()[1].partition(">")[0] for line in needed if "extra ==" not in line}
    assert {"jinja2", "scipy"} <= plain  # the answer and its page need no extra


@pytest.mark.slow
def test_its_experiments_are_planned_by_name_and_run_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    (tmp_path / "empty").mkdir()
    code = (
        "from tuneoff.cli.main import main\nfrom tuneoff.base.packages import experiments\n"
        "names = list(experiments())\n"
        "print([name for name in names if main(['plan', name, '--json']) != 0], len(names))\n"
        "print(main(['run', 'sleep', '--adapter', 'serial', '--trials', '1', '--output', 'r']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "empty", env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    shipped = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "only-include"
    ]
    paths = [path for name in shipped for path in ([*(REPOSITORY / name).glob("*.yaml")] or [REPOSITORY / name])]
    count = sum(path.suffix == ".yaml" for path in paths if path.is_relative_to(REPOSITORY / "benchmarks"))
    assert count > 20
    assert f"[] {count}" in lines
    assert lines[-1] == "0"


def test_commands_start_without_the_packages_of_the_report() -> None:
    code = (
        "import sys\nfrom tuneoff.cli.main import main\nmain(['report', '--help'])\n"
        "print([name for name in ('jinja2', 'markupsafe', 'scipy') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert found.stdout.splitlines()[-1] == "[]"
