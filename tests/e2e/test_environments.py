"""Two releases of a framework, each in an environment of its own, from the command to the page, the export and the bundle.

The index is a folder of wheels made of what is installed here; the older release is the installed one under another number.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import tuneoff
from command_line import Call
from tuneoff.base.packages import canonical
from tuneoff.experiment.environments import name_of
from tuneoff.measure.stored import read_runs
from tuneoff.run import environments
from tuneoff.run.environments import all_built

pytestmark = pytest.mark.slow

RELEASES = ("4.5.0", metadata.version("optuna"))
TRAINING = """
import os, sys
def train(configuration):
    with open(os.environ["PREFIXES"], "a") as file:
        file.write(sys.prefix + "\\n")
    return configuration["x"] ** 2
"""
FILE = """
workload: training:train
objective: {metric: value, mode: min}
search_space: {x: {type: float, low: -1.0, high: 1.0}}
budget: {trials: 3}
seeds: [0, 1]
adapters: [serial]
power: none
"""


def write_index(folder: Path) -> None:
    """Write wheels of tuneoff's and Optuna's distributions, and Optuna's once more as an older release."""
    folder.mkdir()
    waiting, names = ["optuna", "cmaes", *(metadata.requires("tuneoff") or ())], set[str]()
    while waiting:
        requirement = waiting.pop()
        name = canonical(name_of(requirement))
        if "extra ==" in requirement or name in names:
            continue
        try:
            waiting += metadata.requires(name) or ()
        except metadata.PackageNotFoundError:  # of another Python or system
            continue
        names.add(name)
        environments._wheel(metadata.distribution(name).metadata["Name"], folder)
    older, newer = (f"optuna-{release}" for release in RELEASES)
    with (
        zipfile.ZipFile(folder / f"{newer}-py3-none-any.whl") as wheel,
        zipfile.ZipFile(folder / f"{older}-py3-none-any.whl", "w") as copy,
    ):
        for name in wheel.namelist():
            content = wheel.read(name)
            if name.endswith((".dist-info/METADATA", "/RECORD")):
                content = content.replace(f"\nVersion: {RELEASES[1]}\n".encode(), f"\nVersion: {RELEASES[0]}\n".encode())
                content = content.replace(newer.encode(), older.encode())
            copy.writestr(name.replace(newer, older), content)


def test_two_releases_are_compared_apart_bundled_and_reproduced(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages/" not in path])  # Ray adds what it has copied
    write_index(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    folders = {"PIP_FIND_LINKS": "index", "TUNEOFF_CACHE_DIR": "cache", "UV_CACHE_DIR": "uv", "PREFIXES": "prefixes"}
    for variable, folder in folders.items():
        monkeypatch.setenv(variable, str(tmp_path / folder))
    Path("training.py").write_text(TRAINING)
    Path("file.yaml").write_text(FILE)
    entries = [f"optuna=={release}" for release in RELEASES]
    answer = call("compare", "file.yaml", "--adapter", *entries, "--output", "results")
    assert answer.code == 0, answer.err
    assert answer.err.index(f"environment {entries[1]}: made in ") < answer.err.index("[1/")
    assert all(re.search(rf"^Optuna {re.escape(release)} ", answer.out, re.MULTILINE) for release in RELEASES)

    prefixes = {*(tmp_path / "prefixes").read_text().split()}
    assert prefixes == {str(folder) for folder, _ in all_built()}
    assert len(prefixes) == 2
    records = list(read_runs(Path("results")))
    assert {(run.run_spec().environment.version, run.versions["framework_version"]) for run in records} == {  # type: ignore[union-attr]
        (release, release) for release in RELEASES
    }
    for run in records:
        assert run.environment["distributions"]["optuna"] == run.versions["framework_version"]
        assert run.environment["distributions"].keys() >= {"tuneoff", "numpy", "sqlalchemy"}
    assert {*tuneoff.load("results").runs["label"]} == {*entries}
    page = Path("results/report/report.html").read_text()
    assert all(entry in page for entry in entries)

    before = os.listdir(tmp_path / "index")
    for name in before:  # they are used again without one
        (tmp_path / "index" / name).rename(tmp_path / name)
    assert call("compare", "file.yaml", "--adapter", *entries, "--seeds", "0", "--offline", "--output", "again").code == 0
    for name in before:
        (tmp_path / name).rename(tmp_path / "index" / name)

    Path("null.yaml").write_text(FILE.replace("training:train", "'null'").replace("{metric: value, mode: min}", "{}"))
    assert call("compare", "null.yaml", "--adapter", *entries, "--seeds", "0", "--output", "null").code == 0
    assert call("bundle", "null").code == 0
    bundle = next(tmp_path.glob("*.tar*"))
    reproduced = json.loads(call("reproduce", bundle, "--all", "--json", "--output", "reproduced").out)
    assert reproduced["answer"] == "REPRODUCED", reproduced["why"]
    assert {run.versions["framework_version"] for run in read_runs(Path("reproduced"))} == {*RELEASES}
