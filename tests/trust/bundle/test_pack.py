"""Packing: all that a results folder proves is in, what is missing is said, and what must not be for others is refused."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.bundles import LIMIT, packed
from builders.results_folders import Results, edit, execution, write_examples
from builders.stored import write_run
from tuneoff.errors import ResultsError
from tuneoff.measure.stored import read_run
from tuneoff.record.endings import KILLED
from tuneoff.trust.bundle.archive import unpack
from tuneoff.trust.bundle.manifest import BundleManifest
from tuneoff.trust.bundle.opened import open_bundle
from tuneoff.trust.bundle.pack import UnverifiedError


def unpacked(path: Path, folder: Path) -> BundleManifest:
    folder.mkdir()
    return unpack(path, folder, LIMIT)


def test_what_is_in_a_bundle_is_a_results_folder_again(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # another test may have one in the common folder
    found = open_bundle(packed(results.path, tmp_path / "b.tar.gz").path, LIMIT)
    assert found.problems == ()
    assert found.plan == results.plan
    assert found.records == {run.run_id: read_run(results.folder(run.spec)) for run in results.plan.runs}
    assert not list(tmp_path.glob("tuneoff-bundle-*"))


def test_the_same_folder_gives_the_same_bundle(results: Results, tmp_path: Path) -> None:
    one, other = (packed(results.path, tmp_path / name) for name in ("one.tar.gz", "other.tar.gz"))
    assert one.sha256 == other.sha256
    assert one.path.read_bytes() == other.path.read_bytes()


def test_a_folder_that_is_not_verified_is_refused_or_says_so(results: Results, tmp_path: Path) -> None:
    path = results.folder(results.plan.runs[0].spec) / "run.json"
    edit(path, lambda text: text.replace('"value":176000.0', '"value":175000.0', 1))
    with pytest.raises(UnverifiedError, match=r"is not verified: .*stored 175000.0, recomputed 176000.0") as caught:
        packed(results.path, tmp_path / "b.tar.gz")
    assert caught.value.exit_code == 1
    assert not (tmp_path / "b.tar.gz").exists()
    found = packed(results.path, tmp_path / "b.tar.gz", allow_unverified=True)
    manifest = unpacked(found.path, tmp_path / "u")
    assert not manifest.verified
    assert "stored 175000.0" in manifest.problems[0]
    assert "NOT VERIFIED when it was made" in (tmp_path / "u" / "README.txt").read_text()


def test_runs_that_are_not_done_are_packed_with_what_is_missing(results: Results, tmp_path: Path) -> None:
    spec = results.plan.runs[0].spec
    results.finish(spec, ruling=KILLED)
    (results.path / "runs" / spec.run_id / f"{spec.run_id}-killed" / "events").mkdir(parents=True)
    manifest = unpacked(packed(results.path, tmp_path / "b.tar.gz", allow_unverified=True).path, tmp_path / "u")
    assert any("is interrupted: " in line for line in manifest.missing)
    assert f"execution {spec.run_id}-killed has no record: its command was killed before it had one" in manifest.missing
    assert manifest.missing[0] in (tmp_path / "u" / "README.txt").read_text()


def test_the_checkpoint_is_packed_where_it_is_asked_for(results: Results, tmp_path: Path) -> None:
    folder = execution(results.path, "serial")
    record = read_run(folder)
    assert record.test is not None
    path = folder / "checkpoints" / f"{record.test.trial}.safetensors"
    path.parent.mkdir()
    path.write_bytes(b"weights")
    write_run(folder, replace(record, test=replace(record.test, checkpoint_sha256="a" * 64)))
    more: dict[str, Any] = {"allow_unverified": True}
    names = [file.path for file in packed(results.path, tmp_path / "b", checkpoints=True, **more).manifest.files]
    assert any(name.endswith(path.name) for name in names)
    names = [file.path for file in packed(results.path, tmp_path / "c", **more).manifest.files]
    assert not any(name.endswith(path.name) for name in names)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_is_refused(results: Results, tmp_path: Path, what: str) -> None:
    events = execution(results.path, "serial") / "events"
    if what == "file":
        (tmp_path / "private.jsonl").write_text("")
        (events / "worker-x.jsonl").symlink_to(tmp_path / "private.jsonl")
    else:
        events.rename(tmp_path / "elsewhere")
        events.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ResultsError, match="is a link"):
        packed(results.path, tmp_path / "b.tar.gz", allow_unverified=True)


def test_a_folder_in_use_is_refused(results: Results, tmp_path: Path) -> None:
    with (results.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ResultsError, match="is in use by another tuneoff command"):
            packed(results.path, tmp_path / "b.tar.gz")


def test_what_is_too_large_is_refused_before_it_is_read(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuneoff.trust.bundle.pack.check_no_secrets", lambda contents: pytest.fail("files were read"))
    (events,) = execution(results.path, "serial").glob("events/coordinator-*")
    os.truncate(events, 8_000_000)  # a sparse file
    with pytest.raises(ResultsError, match="the bundle would unpack to 9 MB, but the limit is 3 MB"):
        packed(results.path, tmp_path / "b.tar.gz", allow_unverified=True, limit_bytes=3_000_000)


@pytest.mark.parametrize(
    ("name", "odd"),
    [
        ("workload", []),
        ("versions", {"": "1"}),
        ("memory_total_bytes", 10**400),
        ("machine_before", {"sentinel_ns": 10**400}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_record_that_cannot_be_read_is_one_line_when_it_is_packed(
    results: Results, tmp_path: Path, name: str, odd: Any
) -> None:
    path = execution(results.path, "serial") / "end.json"
    end = json.loads(path.read_text())
    end["environment"][name] = odd
    path.write_text(json.dumps(end))
    with pytest.raises(ResultsError, match=r"end\.json(: the record cannot be derived| is damaged: )"):
        packed(results.path, tmp_path / "b.tar.gz", allow_unverified=True)


def test_what_is_there_already_is_replaced_only_by_the_next_bundle_of_its_plan(results: Results, tmp_path: Path) -> None:
    notes: list[str] = []
    target = tmp_path / "b.tar.gz"
    first = packed(results.path, target, note=notes.append)
    assert not any("is replaced" in note for note in notes)
    assert packed(results.path, target, note=notes.append).sha256 == first.sha256
    assert f"{target} is an earlier bundle of the same plan, and is replaced" in notes
    other = write_examples(tmp_path / "other", seeds=(0, 1))
    with pytest.raises(ResultsError, match=r"exists: a bundle of other results \(example\); remove it or choose"):
        packed(other.path, target)
    mine = tmp_path / "thesis.tex"
    mine.write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for kept in (mine, tmp_path / "link", tmp_path / "pipe"):
        with pytest.raises(ResultsError, match="exists and is not a bundle of this tuneoff; remove it or choose"):
            packed(results.path, kept)
    for folder in (Path(), Path("/"), tmp_path):
        with pytest.raises(ResultsError, match="is a folder; give --output a file's name"):
            packed(results.path, folder)
    assert (mine.read_text(), target.stat().st_size) == ("mine", first.size_bytes)


def test_a_name_that_no_bundle_can_hold_is_one_line_and_one_of_a_bare_execution_is_shown(
    results: Results, tmp_path: Path
) -> None:
    (results.path / "runs" / "x" / "\udcff").mkdir(parents=True)
    missing = packed(results.path, tmp_path / "b.tar.gz", allow_unverified=True).manifest.missing
    assert "execution \\udcff has no record: its command was killed before it had one" in missing
    (execution(results.path, "serial") / "events" / "worker\x01.jsonl").write_text("")
    with pytest.raises(ResultsError, match="may not be in a bundle; rename or remove it"):
        packed(results.path, tmp_path / "c.tar.gz", allow_unverified=True)


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_a_signal_leaves_neither_an_unpacked_bundle_nor_half_a_one(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def interrupted(*arguments: object) -> None:
        signal.raise_signal(number)
        pytest.fail("it goes on")

    before = [signal.getsignal(number) for number in signal.Signals]
    target = packed(results.path, tmp_path / "b.tar.gz").path
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("tuneoff.trust.bundle.opened.verify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        open_bundle(target, LIMIT)
    monkeypatch.setattr("tuneoff.trust.bundle.archive._add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        packed(results.path, tmp_path / "c.tar.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.tar.gz", "results"]
    assert [signal.getsignal(number) for number in signal.Signals] == before
