"""Bundles of real runs, reproduced for real: the same is REPRODUCED, and what is changed is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builders.bundles import in_records, repacked
from builders.distributions import install
from data_workload import VARIABLE

pytestmark = pytest.mark.slow
TESTS = Path(__file__).parents[1]
MATRIX: dict[str, Any] = {
    "name": "reproduced",
    "workload": "from_file",
    "sampler": "random",
    "budget": {"trials": 4, "epochs_per_trial": 2},
    "seeds": [0, 1],
    "adapters": ["serial", "optuna"],
    "warm_up": False,
}


@dataclass(frozen=True)
class Place:
    """A folder with a data file, in which commands are run."""

    folder: Path
    data: str = "pupils.csv"

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": f"{self.folder / 'installed'}:{TESTS}", VARIABLE: str(self.folder / self.data)}
        command = [sys.executable, "-m", "tuneoff", *map(str, words)]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=280)

    def reproduce(self, bundle: Path, *words: str) -> dict[str, Any]:
        answer = self.run("reproduce", bundle, "--json", *words)
        assert answer.stdout, answer.stderr
        found: dict[str, Any] = json.loads(answer.stdout)
        assert found["exit_code"] == answer.returncode
        return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("reproduced")
    install(folder / "installed", workloads={"from_file": "data_workload:FromFile"})
    (folder / "pupils.csv").write_text("1,2\n")
    (folder / "changed.csv").write_text("1,3\n")
    (folder / "matrix.yaml").write_text(json.dumps(MATRIX))
    return Place(folder)


@pytest.fixture(scope="module")
def bundle(place: Place) -> Path:
    ran = place.run("compare", "--no-report", "--json", "matrix.yaml", "--output", "results/first")
    assert ran.returncode == 0, ran.stderr
    made = place.run("bundle", "results/first")
    assert made.returncode == 0, made.stderr
    return place.folder / "results" / "first.tar.gz"


def columns(found: dict[str, Any], *answers: str) -> set[str]:
    return {column["name"] for column in found["columns"] if column["answer"] in answers and column["tolerance"] != "machine"}


def test_the_same_is_reproduced(place: Place, bundle: Path) -> None:
    found = place.reproduce(bundle)
    assert (found["answer"], found["exit_code"]) == ("REPRODUCED", 0), found["why"]
    assert len(found["runs"]) == 2
    assert columns(found, "DIFFERENT", "INCONCLUSIVE") == set()
    assert {"configurations", "validation metrics", "test scores", "quality.test"} <= columns(found, "REPRODUCED")
    assert {column["name"] for column in found["columns"] if column["tolerance"] == "machine"} >= {"time.jct", "energy.job"}
    results = Path(found["results"])
    stored = json.loads((results / "reproduction.json").read_text())
    assert {name: found[name] for name in stored} == stored
    assert place.run("verify", results).returncode == 0


def test_another_data_file_is_different_and_named(place: Place, bundle: Path) -> None:
    found = Place(place.folder, "changed.csv").reproduce(bundle, "--adapter", "serial")
    assert (found["answer"], found["exit_code"]) == ("DIFFERENT", 1)
    assert "data file pupils.csv is SHA-256 " in found["why"]
    assert {"validation metrics", "test scores"} <= columns(found, "DIFFERENT")
    assert "configurations" in columns(found, "REPRODUCED")


def test_data_that_are_gone_are_inconclusive_and_named(place: Place, bundle: Path) -> None:
    found = Place(place.folder, "gone.csv").reproduce(bundle, "--adapter", "serial")
    assert (found["answer"], found["exit_code"], found["results"]) == ("INCONCLUSIVE", 7, None)
    assert "gone.csv cannot be read" in found["why"]


def test_another_framework_version_is_never_reproduced(place: Place, bundle: Path) -> None:
    def older(record: dict[str, Any]) -> None:
        if "optuna" in record["environment"]["versions"]:
            record["environment"]["versions"]["optuna"] = "5.0.0.dev1"

    planted = repacked(bundle, place.folder / "older.tar.gz", in_records(older))
    found = place.reproduce(planted, "--adapter", "optuna")
    assert (found["answer"], found["exit_code"]) == ("INCONCLUSIVE", 7)
    assert "it is not the same experiment; changed: " in found["why"]
    assert "optuna is 5.0.0 here, 5.0.0.dev1 in the bundle" in found["why"]
    assert columns(found, "DIFFERENT", "INCONCLUSIVE") == set()
