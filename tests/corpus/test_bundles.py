"""What `bundle` packs of the recorded folders, and what `reproduce` says of them where another folder is what was run here."""

from __future__ import annotations

import functools
import json
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from corpus.conftest import Recorded, padded
from corpus.figures import call
from tuneoff.measure.stored import read_runs
from tuneoff.record.results_folder import read_plan
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import selected_executions
from tuneoff.run.provenance import prepare
from tuneoff.run.run_ends import run_ends
from tuneoff.trust.bundle import reproduce
from tuneoff.trust.official import OFFICIAL

pytestmark = pytest.mark.slow

_DIGEST = re.compile(r"(?<![.\w])(?=\w*\d)[0-9a-f]{12,64}\b")  # of the code, of archives
_SIZE = re.compile(r"\d+\.\d+ MB")
ELSEWHERE: dict[str, Any] = {  # what another machine would tell
    "cpu": {
        "vendor": "V",
        "family": 6,
        "model": 1,
        "stepping": 2,
        "name": "Other",
        "logical_count": 64,
        "instruction_sets": ["avx"],
    },
    "kernel": "9.1",
    "libc": "musl",
    "python": "3.99.0",
    "memory_total_bytes": 2**40,
    "accelerators": [{"name": "H", "memory_mb": 80_000}],
    "workload": {"sha256": "0" * 64},
}
HELD_TO: list[tuple[str, str, str, bool]] = [  # the bundle, what was run here, options, whether here is another machine
    ("judged", "judged-again", "--all", True),
    ("listed", "damaged-record", "--all", False),
    *((name, "shifted", "--all", False) for name in ("digits", "judged", "listed", "pruners", "budgets", "disturbed")),
    ("energy", "shifted", "--all", True),
    ("tasks", "shifted", "--runs 3", False),
    ("partly-failed", "failed", "", False),
    ("katib", "katib", "", False),
    ("judged", "judged", "--seed 7", False),
]
PRINTED_AS_JSON = ("energy", "tasks", "partly-failed", "katib")


@pytest.fixture(scope="module")
def packed(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that gives the bundle of a recorded folder, packed once."""

    @functools.cache
    def pack(name: str) -> Path:
        bundle = tmp_path_factory.mktemp("packed") / "b.tar.gz"
        call(recorded(name), "bundle", str(recorded(name)), "--output", str(bundle))
        return bundle

    return pack


@pytest.fixture
def here(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of always the same length."""
    monkeypatch.setenv("COLUMNS", "130")
    return padded(tmp_path)


def be_where(folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> None:
    """Let the machine and the workload's code be those of a folder's runs, but for `more`."""
    environment = {**next(iter(read_runs(folder))).environment, **more}
    monkeypatch.setattr(reproduce, "capture", lambda packages: dict(environment))
    monkeypatch.setattr(reproduce, "prepare_data", lambda workload: replace(prepare(workload), code=environment["workload"]))


def masked(text: str) -> str:
    return _DIGEST.sub("DIGEST", text)


@pytest.mark.parametrize("name", ["digits", "retries", "resumed", "energy", "program"])
def test_a_bundle_tells_of_itself(name: str, recorded: Recorded, here: Path, snapshot: SnapshotAssertion) -> None:
    more = ["--allow-unverified"] if name.startswith("damaged") else []
    said = call(recorded(name), "bundle", str(recorded(name)), "--output", str(here / "b.tar.gz"), *more).text.replace(
        str(here), "HERE"
    )
    with tarfile.open(here / "b.tar.gz") as archive:
        archive.extractall(here, filter="data")
    top = next(path for path in here.iterdir() if path.is_dir())
    manifest = json.loads((top / "manifest.json").read_text())
    files = [file["path"] for file in manifest.pop("files")]
    others = (path for path in sorted(top.iterdir()) if path.suffix in (".txt", ".json"))
    texts = [path.read_text() for path in others if path.name not in ("manifest.json", *OFFICIAL)]
    assert masked("\n".join([_SIZE.sub("N MB", said), json.dumps(manifest, indent=1), *files, *texts])) == snapshot


@pytest.mark.parametrize("name", ["damaged-values", "failed", "unrecorded", "retries"])
def test_a_folder_that_is_not_bundled_or_reproduced(
    name: str, recorded: Recorded, here: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    if name == "retries":
        be_where(recorded(name), monkeypatch)
    said = call(recorded(name), "bundle", str(recorded(name)), "--output", str(here / "b.tar.gz")).text
    said += call(here / "b", "reproduce", str(here / "b.tar.gz"), "--plan").text
    assert masked(_SIZE.sub("N MB", said).replace(str(here), "DIR")) == snapshot


@pytest.mark.parametrize(("name", "other", "options", "is_elsewhere"), HELD_TO, ids=lambda word: str(word))
def test_a_bundle_is_held_to_what_was_run_here(
    name: str,
    other: str,
    options: str,
    is_elsewhere: bool,
    recorded: Recorded,
    packed: Callable[[str], Path],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    bundle = Path(shutil.copy(packed(name), here))
    results = shutil.copytree(recorded(name if other == "shifted" else other), here / "here")
    if other == "shifted":
        monkeypatch.setattr(
            reproduce, "read_runs", lambda path: shifted(read_runs(path), [run.run_id for run in read_plan(path).counted])
        )
    be_where(recorded(name), monkeypatch, **(ELSEWHERE if is_elsewhere else {}))
    monkeypatch.setattr("tuneoff.cli.reproduce._run", lambda *given: (results, run_ends(results, read_plan(results))))
    answer = call(results, "reproduce", str(bundle), *options.split())
    assert masked(answer.text) == snapshot
    if name in PRINTED_AS_JSON:
        stored = json.loads((results / "reproduction.json").read_text())
        told = call(results, "reproduce", str(bundle), *options.split(), "--json").out
        assert json.loads(told.replace("DIR", str(here))) == {**stored, "exit_code": answer.code}
        if name == "energy":
            assert masked(told) == snapshot


def shifted(records: Iterable[RunRecord], order: list[str]) -> Iterator[RunRecord]:
    """Yield the records of a folder, each in the place of the next run: same experiments, otherwise done."""
    stand = selected_executions(records)
    names = [name for name in order if name in stand]
    for name, other in zip(names, names[1:] + names[:1], strict=True):
        yield replace(stand[other], run_id=name, execution_id=stand[name].execution_id, specification=stand[name].specification)
