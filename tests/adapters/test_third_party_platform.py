"""A platform that somebody else adds in one module has all adapters with core's pool, as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builders.distributions import install

MODULE = Path(__file__).parent.parent / "subprocess_platform.py"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of a command that has the platform installed."""
    folder = install(
        tmp_path / "installed",
        platforms={"subprocess": "subprocess_platform:SubprocessPlatform"},
        modules={"subprocess_platform": MODULE.read_text()},
    )
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


def tuneoff(words: str, environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tuneoff", *words.split()]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


def test_it_is_small() -> None:
    assert len(MODULE.read_text().splitlines()) <= 80


def test_it_is_listed_with_its_adapters(environment: dict[str, str], tmp_path: Path) -> None:
    said = tuneoff("list platforms subprocess", environment, tmp_path).stdout
    assert {"serial", "optuna"} <= set(said.split())


def test_its_options_are_checked_by_it(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(
        "{workload: sleep, budget: {trials: 1}, adapters: [{name: serial, platform: subprocess, options: {speed: 1}}]}"
    )
    done = tuneoff("plan file.yaml", environment, tmp_path)
    assert (done.returncode, "platform 'subprocess' has no option 'speed'; it has: niceness" in done.stderr) == (2, True), done


@pytest.mark.slow(first=True)
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("adapter", "checks"),
    [("serial", ""), *((name, "--only workers left.outside left.processes budget") for name in ("optuna", "nevergrad"))],
)
def test_adapters_pass_check_on_it(environment: dict[str, str], tmp_path: Path, adapter: str, checks: str) -> None:
    """The baseline passes all checks, the others those of what a platform does for them."""
    if adapter != "serial":
        pytest.importorskip(adapter)
    done = tuneoff(f"check {adapter}@subprocess {checks}", environment, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
