"""Negative controls: files that must not be opened, are nested too deeply, say a thing twice, or contradict the record."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builders.limits import at_most_bytes
from builders.results_folders import Results, edit, events_of, execution, lines, reseal
from tuneoff.measure.stored import read_run
from tuneoff.record.end import end_bytes, key_of
from tuneoff.record.store import write_run as write_record
from tuneoff.trust.verify.results import verify

DEEP = "[" * 200_000


def _other_lines(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    path = events_of(folder, "1")
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
    reseal(folder)


def _environment(folder: Path, **values: object) -> None:
    record = read_run(folder)
    write_record(folder, replace(record, environment={**record.environment, **values}), key_of(end_bytes(folder)))


def _instead(path: Path, make: Callable[[Path], None]) -> None:
    path.unlink()
    make(path)


PLANTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe among the events": (lambda folder: os.mkfifo(folder / "events" / "x.jsonl"), "events/x.jsonl: is a pipe, and must"),
    "an event file with a name of no text": (
        lambda folder: Path(os.fsdecode(bytes(folder / "events") + b"/\xff.jsonl")).write_text(""),
        "is not named in UTF-8, and must be a file",
    ),
    "a pipe as samples": (lambda folder: _instead(folder / "power.jsonl", os.mkfifo), "is a pipe"),
    "a pipe as the record": (lambda folder: _instead(folder / "run.json", os.mkfifo), "is a pipe"),
    "a link to a device": (
        lambda folder: _instead(folder / "power.jsonl", lambda path: path.symlink_to("/dev/zero")),
        "power.jsonl: is a link, and must be a file",
    ),
    "a record that is a link to nothing, and not of a killed command": (
        lambda folder: _instead(folder / "run.json", lambda path: path.symlink_to("nowhere")),
        "run.json: is a link",
    ),
    "a pipe as the end": (lambda folder: _instead(folder / "end.json", os.mkfifo), "is a pipe"),
    "a deep end": (lambda folder: (folder / "end.json").write_text(DEEP), "end.json: is damaged: is nested too deeply"),
    "a deep field": (
        lambda folder: edit(
            folder / "end.json",
            lambda text: text.replace('"environment": {', f'"environment": {{"x": {DEEP}{"]" * len(DEEP)}, '),
        ),
        "end.json: is damaged: is nested too deeply",
    ),
    "a deep specification": (lambda folder: (folder / "spec.json").write_text(DEEP), "spec.json is not a specification of a run"),
    "a key of a seal that nobody reads": (
        lambda folder: edit(folder / "end.json", lambda text: text.replace('"size_bytes": ', '"size": 1, "size_bytes": ', 1)),
        "end.json: is not as tuneoff writes it",
    ),
    "a key twice": (
        lambda folder: edit(folder / "end.json", lambda text: text.replace('"ruling": ', '"ruling": null, "ruling": ')),
        "end.json ruling: stands twice in one object",
    ),
    "no specification": (lambda folder: (folder / "spec.json").unlink(), "spec.json: is missing"),
    "other versions": (
        lambda folder: (folder / "versions.json").write_text('{"cluster": "v1.30"}'),
        "versions.json: was added after the seal",
    ),
    "another meter": (
        lambda folder: _environment(folder, power={"meter": "rapl", "kind": "measured"}),
        'environment.power.meter: stored "rapl", recomputed "command"',
    ),
    "a line twice": (
        lambda folder: _other_lines(folder, lambda found: [*found[:4], found[3], *found[4:]]),
        "events stand twice or in another order at line 5: expected seq 4, found 3",
    ),
    "lines in another order": (
        lambda folder: _other_lines(folder, lambda found: [*found[:3], found[4], found[3], *found[5:]]),
        "events stand twice or in another order at line 5: expected seq 5, found 3",
    ),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_defect_of_a_file_is_named(results: Path, plant: str) -> None:
    change, named = PLANTS[plant]
    change(execution(results, "serial"))
    found = lines(results)
    assert any(named in line for line in found), found
    assert not any("RecursionError" in line for line in found)


@pytest.mark.usefixtures("tables")
def test_tables_are_not_made_where_a_file_must_not_be_opened(results: Path) -> None:
    folder = execution(results, "serial")
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")
    found = verify(results)
    assert [problem.what for problem in found.problems] == ["run.json"]
    assert found.notes == ["export/ was not compared: an execution has a file that must not be opened"]


def test_an_emptied_execution_is_named_where_later_runs_have_one(results: Path) -> None:
    folder = execution(results, "serial")
    shutil.rmtree(folder)
    folder.mkdir()
    found = lines(results)
    assert found == [
        f"runs/{folder.parent.name}: planned (serial random seed 0), but it has no execution, "
        "and later runs of the plan have one: it was removed"
    ]


@pytest.mark.parametrize(("lock", "is_named"), [("", True), (None, True), ("4711\n", False)])
def test_the_last_run_is_missed_unless_the_command_was_cut(results: Path, lock: str | None, is_named: bool) -> None:
    """A command that came to its end leaves an empty lock; one that was killed or interrupted between two runs its pid."""
    shutil.rmtree(execution(results, "optuna").parent)
    if lock is not None:
        (results / ".lock").write_text(lock)
    found = verify(results)
    assert found.is_verified is not is_named
    assert [run.name for run in found.not_begun] == ([] if is_named else ["optuna random seed 0"])


def test_all_runs_removed_is_named_where_the_command_came_to_its_end(results: Path) -> None:
    shutil.rmtree(results / "runs")
    assert verify(results).is_verified  # nothing tells that a run was begun
    (results / ".lock").write_text("")
    assert len(lines(results)) == 2


def test_one_record_is_lacking_after_a_kill_and_no_more(results: Path, sound: Results) -> None:
    """A killed command leaves one execution without an end; the next command states it."""
    (execution(results, "optuna") / "end.json").unlink()
    assert len(lines(results)) == 1
    (results / ".lock").write_text("4711\n")
    found = verify(results)
    assert found.is_verified
    assert "`--resume` ends it" in next(outcome.notes[0] for outcome in found.outcomes if outcome.status is None)
    (execution(results, "serial") / "end.json").unlink()
    assert len(lines(results)) == 2


def test_a_sound_copy_that_is_a_link_is_not_followed(results: Path, tmp_path: Path) -> None:
    run = execution(results, "serial").parent
    shutil.move(run, tmp_path / "elsewhere")
    run.symlink_to(tmp_path / "elsewhere")
    assert f"runs/{run.name}: is not a folder" in lines(results)


@pytest.mark.usefixtures("tables")
def test_runs_that_cannot_be_listed_are_one_line(results: Path) -> None:
    shutil.rmtree(results / "runs")
    (results / "runs").write_text("")
    assert lines(results) == ["runs: cannot be read: Not a directory"]


def test_tables_that_cannot_be_listed_are_one_line(results: Path) -> None:
    (results / "export").write_text("")
    assert lines(results) == ["export: cannot be read: Not a directory"]


def test_a_file_that_cannot_be_read_is_one_line(results: Path) -> None:
    folder = execution(results, "serial")
    (folder / "events").rename(folder / "moved")
    (folder / "events").symlink_to(folder / "events")
    (line,) = lines(results)
    assert line.endswith("events: is a link, and must be a file")


def test_a_file_in_the_place_of_an_execution_is_named(results: Path) -> None:
    folder = execution(results, "serial")
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.write_text("{}")
    assert f"{folder.relative_to(results)}: is not a folder" in lines(results)


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(results: Path) -> None:
    os.mkfifo(results / ".lock")
    assert lines(results) == []


@pytest.mark.parametrize("table", ["runs.csv", "steps.csv"])
def test_a_table_that_is_far_too_large_is_named_unread(results: Path, tables: Path, table: str) -> None:
    with (tables / table).open("ab") as file:
        file.truncate(10**12)
    with at_most_bytes(4 * 10**9):
        assert lines(results) == [f"export/{table}: is not what the records give; export again"]


def test_an_execution_with_a_name_of_no_text_is_named_and_not_read(results: Path) -> None:
    folder = execution(results, "serial")
    folder.rename(os.fsdecode(bytes(folder.parent) + b"/\xff"))
    texts = [problem.text for problem in verify(results).plan.problems]
    assert "is not named in UTF-8" in texts
