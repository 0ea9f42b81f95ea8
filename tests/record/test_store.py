from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.event_logs import example_a, example_b
from builders.results_folders import edit, write_examples
from builders.stored import write_run
from tuneoff.base.layout import END, RECORD
from tuneoff.errors import ResultsError
from tuneoff.measure.derived import derive_folder, with_metrics
from tuneoff.measure.stored import read_run, read_runs
from tuneoff.record.derive import derive
from tuneoff.record.end import BESIDE, broken_seals, read_spec, seal
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import run_json_schema, selected_executions
from tuneoff.tell.record_head import read_head

jsonschema: Any = importlib.import_module("jsonschema")  # it has no types


@pytest.fixture
def record() -> RunRecord:
    log, spec = example_b()
    return with_metrics(derive(log.pairs(), spec))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of an execution that has ended, of example A."""
    spec = example_a()[1]
    return write_examples(tmp_path / "results").folder(spec)


def test_the_file_begins_with_its_format_version_and_meets_the_published_schema(record: RunRecord, tmp_path: Path) -> None:
    content = write_run(tmp_path, record).read_text()
    assert content.startswith('{\n "format_version": 5,\n "key": "')
    jsonschema.Draft202012Validator(run_json_schema()).validate(json.loads(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"key": "', '"key": "0', 1),
        lambda text: text.replace('"format_version": 5', '"format_version": 4', 1),
        lambda text: text.replace('"status": "done"', '"status": "splendid"', 1),
        lambda text: text.replace('"status": "done"', '"status": "failed"', 1),
        lambda text: text.replace('"execution_id": "', '"execution_id": "../../', 1),
        lambda text: text.replace('"seed":0', '"seed":"0"', 1),
        lambda text: "\udcff\udcfe",
    ],
)
def test_a_stored_record_that_is_missing_or_damaged_is_derived_anew(folder: Path, change: Callable[[str], str]) -> None:
    path = folder / RECORD
    before, head, text = read_run(folder), read_head(folder), path.read_text()
    path.write_bytes(change(text).encode("utf-8", "surrogateescape"))
    assert path.read_bytes() != text.encode()
    assert (read_run(folder), read_head(folder)) == (before, head)
    path.unlink()
    assert (read_run(folder), read_head(folder)) == (before, head)
    path.symlink_to("/dev/zero")
    assert (read_run(folder), read_head(folder)) == (before, head)


def test_a_stored_record_of_the_same_files_is_taken_as_it_is(folder: Path) -> None:
    """The negative control of the test above: else it would pass where nothing is ever read."""
    edit(folder / RECORD, lambda text: text.replace('"value":176000.0', '"value":175000.0', 1))
    assert read_run(folder).metrics["time.jct"].value == 175_000


@pytest.mark.parametrize("name", ["power.jsonl", "accounting.json", "spec.json", "events/worker-101-1012000000000.jsonl"])
@pytest.mark.parametrize("damage", [b"", None])
def test_nothing_is_derived_from_damaged_files(folder: Path, name: str, damage: bytes | None) -> None:
    before = read_run(folder)
    if damage is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(damage)
    assert read_run(folder) == before
    (folder / RECORD).unlink()
    with pytest.raises(
        ResultsError, match=f"{name} (is missing|changed: .*); restore it, or remove the execution's folder"
    ) as error:
        read_run(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace('"format_version": 5', '"format_version": 99', 1), "has format version 99, but this tuneoff"),
        (lambda text: text[: len(text) // 2], "is damaged: Input data was truncated; restore it"),
        (lambda text: text.replace('"ruling": null', '"ruling": {"status": "splendid"}', 1), "is damaged: Invalid enum value"),
        (lambda text: text.replace('"ruling": null', '"ruling": {"status": "failed"}', 1), "cannot be derived from its files"),
        (lambda text: "[" * 200_000, "is damaged: "),
    ],
)
def test_an_end_that_cannot_be_used_is_one_line(folder: Path, change: Callable[[str], str], message: str) -> None:
    path = folder / END
    before = path.read_text()
    path.write_bytes(change(before).encode("utf-8", "surrogateescape"))
    assert path.read_bytes() != before.encode()
    with pytest.raises(ResultsError, match=message) as error:
        read_run(folder)
    assert "\n" not in str(error.value)


def test_a_full_disk_is_one_line_and_leaves_the_old_file(
    record: RunRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / record.run_id / record.execution_id
    folder.mkdir(parents=True)
    write_run(folder, record)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(ResultsError, match="No space left on device; free space"):
        write_run(folder, replace(record, status="failed", reason="x"))
    assert read_run(folder) == record
    assert {path.name for path in folder.iterdir()} == {RECORD, END}


def test_a_seal_shows_every_later_change(tmp_path: Path) -> None:
    folder = example_a()[0].save(tmp_path / "events")
    for name in BESIDE:
        (tmp_path / name).write_text(name)
    sealed = seal(tmp_path)
    assert {file.name for file in sealed} == {f"events/{path.name}" for path in folder.iterdir()} | set(BESIDE)
    assert list(broken_seals(tmp_path, sealed)) == []
    first, second, third = sorted(folder.iterdir())
    content = bytearray(first.read_bytes())
    content[100] ^= 1
    first.write_bytes(bytes(content))
    second.unlink()
    (folder / "worker-new.jsonl").write_bytes(b"{}\n")
    (tmp_path / BESIDE[0]).write_text("other")
    found = [str(broken) for broken in broken_seals(tmp_path, sealed)]
    assert [text.partition(":")[0] for text in found] == [
        f"events/{first.name} changed",
        f"events/{second.name} is missing",
        f"{BESIDE[0]} changed",
        "events/worker-new.jsonl was added after the seal",
    ]
    assert third.exists()


def test_seals_of_event_files_by_their_bare_names_hold_nothing(tmp_path: Path) -> None:
    folder = example_a()[0].save(tmp_path / "events")
    bare = [replace(file, name=Path(file.name).name) for file in seal(tmp_path)]
    (tmp_path / BESIDE[0]).write_text("{}")
    assert len(list(broken_seals(tmp_path, bare))) == 2 * len(list(folder.iterdir())) + 1


def test_missing_and_torn_lines_are_in_the_record(tmp_path: Path) -> None:
    log, spec = example_b()
    path = sorted(log.save(tmp_path / "events").glob("trial-*"))[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], *lines[4:]])[:-5])
    record = derive_folder(tmp_path, spec).record
    assert record.torn_lines == 1
    assert "missing_lines" in {flag.name for flag in record.flags}


def test_the_latest_done_execution_stands_for_its_run(record: RunRecord) -> None:
    old = replace(record, execution_id="a", started_at="2025-01-01T00:00:00")
    new = replace(record, execution_id="b", started_at="2025-01-02T00:00:00")
    failed = replace(record, execution_id="c", started_at="2025-01-03T00:00:00", status="failed", reason="x")
    assert [run.execution_id for run in selected_executions([failed, new, old]).values()] == ["b"]
    assert [run.execution_id for run in selected_executions([replace(old, status="failed", reason="x"), failed]).values()] == [
        "c"
    ]


def test_a_missing_results_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="does not exist"):
        list(read_runs(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), "0"),
        (("experiment", "search_space", "dimensions", 0, "name"), 5),
        (("experiment", "search_space", "dimensions", 0, "low"), "a"),
        (("experiment", "workers", "cpus"), [1]),
        (("experiment", "objective", "mode"), "up"),
        (("experiment",), None),
    ],
)
def test_a_specification_of_other_types_is_one_line(folder: Path, path: tuple[Any, ...], value: Any) -> None:
    data = json.loads((folder / "spec.json").read_text())
    here = data["run"]
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    (folder / "spec.json").write_text(json.dumps(data))
    with pytest.raises(ResultsError, match="is not a specification of a run: a run's specification is damaged: "):
        read_spec(folder)


@pytest.mark.parametrize("read", [read_run, read_head])
def test_a_record_in_the_folder_of_another_run_is_one_line(
    folder: Path, tmp_path: Path, read: Callable[[Path], RunRecord]
) -> None:
    other = shutil.copytree(folder, tmp_path / "moved" / "x" / folder.name)
    with pytest.raises(ResultsError, match="which is another place; move its folder there, or remove it"):
        read(other)


@pytest.mark.parametrize("read", [read_run, read_head])
def test_an_execution_has_the_name_of_its_folder(folder: Path, read: Callable[[Path], RunRecord]) -> None:
    renamed = folder.rename(folder.with_name("renamed"))
    assert read(renamed).execution_id == "renamed"
    with pytest.raises(ResultsError, match="its folder must have the execution's name, but was renamed"):
        read(renamed.rename(folder.with_name("a" * 200)))
