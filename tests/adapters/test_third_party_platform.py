"""A platform that somebody else adds in one module has all adapters with core's pool, as they are."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from builders.distributions import install
from tuneoff.measure.stored import read_runs
from tuneoff.trust.check.checks import CHECKS

MODULE = Path(__file__).parent.parent / "subprocess_platform.py"
RUNS = {  # in which a platform can break something
    *("honest-max", "honest-min", "scripted", "faulty", "retried", "coordinator-killed"),
    "interrupted",
}


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
def test_the_baseline_passes_on_it_what_a_platform_can_break(environment: dict[str, str], tmp_path: Path) -> None:
    checks = [check.id for check in CHECKS if RUNS.issuperset(check.reads)]
    done = tuneoff(f"check serial@subprocess --only {' '.join(checks)}", environment, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_others_with_cores_pool_run_on_it(environment: dict[str, str], tmp_path: Path) -> None:
    names = [name for name in ("optuna", "nevergrad") if find_spec(name) is not None]
    adapters = ", ".join(f"{{name: {name}, platform: subprocess}}" for name in names)
    (tmp_path / "file.yaml").write_text(
        f"{{workload: sleep, budget: {{trials: 2}}, workers: {{count: 2}}, adapters: [{adapters}], warm_up: false}}"
    )
    done = tuneoff("compare file.yaml --no-report --json --output results", environment, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = {
        (
            run.specification["adapter"],
            run.specification["platform"],
            run.status,
            sum(end.state == "completed" for end in run.trials),
        )
        for run in read_runs(tmp_path / "results")
    }
    assert {(name, "subprocess", "done", 2) for name in names} == ends
