"""Negative controls: each defect planted in an execution is named, with the execution that has it and nothing else.

Changed values, seals, prices and specifications: the damaged folders of tests/corpus; what must not be opened: tests/hostile.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.limits import at_most_bytes
from builders.results_folders import edit, events_of, execution, lines, reseal
from builders.stored import derive_again
from tuneoff.trust.verify.results import verify

Plant = Callable[[Path], object]
DEEP = "[" * 200_000


def _replaced(name: str, old: str, new: str) -> Plant:
    """Return a plant that writes something else once into a file: one of an execution, or the events of a trial."""

    def plant(folder: Path) -> None:
        edit(events_of(folder, name) if name.isdigit() else folder / name, lambda text: text.replace(old, new, 1))

    return plant


def _other_lines(change: Callable[[list[str]], list[str]]) -> Plant:
    """Return a plant that changes the lines of the first trial's events."""

    def plant(folder: Path) -> None:
        path = events_of(folder, "1")
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))
        reseal(folder)

    return plant


METRIC = _replaced("run.json", '"time.jct": {"value":176000.0', '"time.jct": {"value":175000.0')


def _epoch_value_resealed(folder: Path) -> None:
    _replaced("1", '"validation_accuracy":0.9}', '"validation_accuracy":0.8}')(folder)
    reseal(folder)


def _removed_trial_everywhere(folder: Path) -> None:
    events_of(folder, "2").unlink()
    coordinator = next((folder / "events").glob("coordinator-*"))
    kept = [line for line in coordinator.read_text().splitlines(keepends=True) if '"trial":"2"' not in line]
    coordinator.write_text("".join(kept))
    reseal(folder)


def _ruled(**ruling: str) -> Plant:
    return _replaced("end.json", '"ruling": null', f'"ruling": {json.dumps(ruling)}')


FIRST, SECOND = "worker-101-1012000000000.jsonl", "worker-102-1012000000000.jsonl"  # of trial 1, of trial 2
PLANTS: dict[str, tuple[Plant, list[str]]] = {
    "epoch value resealed": (_epoch_value_resealed, ["epochs[2].metrics.validation_accuracy: stored 0.9, recomputed 0.8"]),
    "removed trial everywhere": (
        _removed_trial_everywhere,
        ['trials[2]: stored {"trial": "2"', "recomputed nothing", "events are missing before line"],
    ),
    "metric": (METRIC, ["metrics.time.jct.value: stored 175000.0, recomputed 176000.0"]),
    "another event version": (
        _replaced("1", '"version":2', '"version":99'),
        ["event schema version 99 is not readable", f"{FIRST}: changed"],
    ),
    "another sample version": (
        _replaced("power.jsonl", '"version":1', '"version":99'),
        ["power.jsonl has version 99, but this tuneoff reads version 1"],
    ),
    "another price version": (
        _replaced("accounting.json", "{", '{"format_version": 99, '),
        ["accounting.json has format version 99, but this tuneoff reads version 1"],
    ),
    "added file": (
        lambda folder: shutil.copy(events_of(folder, "1"), folder / "events" / "worker-999-1.jsonl"),
        ["events/worker-999-1.jsonl: was added after the seal"],
    ),
    "foreign events": (
        _replaced("2", '"execution_id":"run1-abc"', '"execution_id":"run9-xyz"'),
        [f"{SECOND}: it is of execution run9-xyz"],
    ),
    "missing line": (
        _other_lines(lambda before: [*before[:4], *before[5:]]),
        [f"{FIRST}: events are missing before line 5: expected seq 4, found 5"],
    ),
    "a line twice": (
        _other_lines(lambda before: [*before[:4], before[3], *before[4:]]),
        ["events stand twice or in another order at line 5: expected seq 4, found 3"],
    ),
    "unknown field": (
        _replaced("run.json", '"torn_lines": 0', '"torn_lines": 0, "notes": "x"'),
        ['notes: stored "x", recomputed nothing'],
    ),
    "unknown status": (_ruled(status="splendid"), ["end.json: is damaged: Invalid enum value 'splendid'"]),
    "failed by nobody": (
        _ruled(status="failed", reason="the machine burnt down", charged="infrastructure"),
        ["reason: stated 'the machine burnt down' (charged: infrastructure), but no event says so"],
    ),
    "killed, but by the infrastructure": (
        _ruled(status="failed", reason="its tuneoff command was killed", charged="infrastructure"),
        ["status: a run of which 'its tuneoff command was killed' holds is interrupted by the user, but it is failed by infra"],
    ),
    "bytes that are no text": (lambda folder: (folder / "end.json").write_bytes(b"\xff\xfe\x00"), ["end.json: is damaged: "]),
    "no end": (lambda folder: (folder / "end.json").unlink(), ["end.json: is missing: its command was killed"]),
    "no specification": (lambda folder: (folder / "spec.json").unlink(), ["spec.json: is missing"]),
    "damaged samples": (_replaced("power.jsonl", '{"type":"power"', '{"type":"pover"'), ["power.jsonl line 2 is not a sample"]),
    "no event folder": (
        lambda folder: shutil.rmtree(folder / "events"),
        ["events cannot be sealed: No such file or directory"],
    ),
    "an event file with a name of no text": (
        lambda folder: Path(os.fsdecode(bytes(folder / "events") + b"/\xff.jsonl")).write_text(""),
        ["is not named in UTF-8, and must be a file"],
    ),
    "a deep field": (
        _replaced("end.json", '"environment": {', f'"environment": {{"x": {DEEP}{"]" * len(DEEP)}, '),
        ["end.json: is damaged: is nested too deeply"],
    ),
    "a deep specification": (
        lambda folder: (folder / "spec.json").write_text(DEEP),
        ["spec.json is not a specification of a run"],
    ),
    "a key of a seal that nobody reads": (
        _replaced("end.json", '"size_bytes": ', '"size": 1, "size_bytes": '),
        ["end.json: is not as tuneoff writes it"],
    ),
    "a key twice": (
        _replaced("end.json", '"ruling": ', '"ruling": null, "ruling": '),
        ["end.json ruling: stands twice in one object"],
    ),
    "other tested configuration": (
        lambda folder: (folder / "best_configuration.json").write_text('{"extra": 1}'),
        ["best_configuration.json: extra is 1, the events say nothing"],
    ),
    "moved": (
        lambda folder: shutil.move(folder, folder.parent / "run1-abd"),
        ['execution_id: stored "run1-abc", recomputed "run1-abd"'],
    ),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_defect_of_an_execution_is_named(results: Path, name: str) -> None:
    plant, named = PLANTS[name]
    folder = execution(results, "serial")
    plant(folder)
    problems = lines(results)
    for text in named:
        assert any(text in line for line in problems), (text, problems)
    path = f"runs/{folder.parent.name}/{folder.name}"
    assert {line.partition(": ")[0] for line in problems} == {path if folder.exists() else path.replace("abc", "abd")}
    assert not any("RecursionError" in line for line in problems)


def test_a_sound_folder_has_no_problem_and_a_changed_one_its_causes_first(results: Path) -> None:
    verification = verify(results)
    assert (verification.is_verified, [outcome.notes for outcome in verification.outcomes]) == (True, [[], []])
    _replaced("1", '"validation_accuracy":0.9}', '"validation_accuracy":0.8}')(execution(results, "serial"))
    assert [problem.check for problem in verify(results).problems] == ["seal", "value"]


def test_a_changed_metric_is_all_that_is_said(results: Path) -> None:
    folder = execution(results, "serial")
    METRIC(folder)
    assert lines(results) == [f"runs/{folder.parent.name}/run1-abc: metrics.time.jct.value: stored 175000.0, recomputed 176000.0"]


def test_a_checkpoint_is_held_to_the_digest_that_the_test_took(results: Path) -> None:
    folder = execution(results, "serial")
    path = folder / "checkpoints" / "1.safetensors"
    path.parent.mkdir()
    path.write_bytes(b"weights")
    sha256 = "9490c1ab8d9c8a8ec22ed5fbcc0a5b36dc7e8e92eb7d4cfbfd7fc4c2de0c9e4a"
    edit(
        next((folder / "events").glob("coordinator-*")),
        lambda text: text.replace('"scores":{"test_accuracy"', f'"checkpoint_sha256":"{sha256}","scores":{{"test_accuracy"'),
    )
    derive_again(folder)
    (line,) = lines(results)
    assert line.endswith(f"but the test scored {sha256[:12]}")
    path.unlink()
    (line,) = lines(results)
    assert line.endswith("checkpoints/1.safetensors: is missing: the test scored it")


@pytest.mark.usefixtures("tables")
def test_tables_are_not_made_where_a_file_must_not_be_opened(results: Path) -> None:
    folder = execution(results, "serial")
    (folder / "run.json").unlink()
    os.mkfifo(folder / "run.json")
    verification = verify(results)
    assert [problem.what for problem in verification.problems] == ["run.json"]
    assert verification.notes == ["export/ was not compared: an execution has a file that must not be opened"]


@pytest.mark.parametrize(("name", "what"), [("runs", "runs"), ("export", "export")])
def test_a_folder_that_cannot_be_listed_is_one_line(results: Path, tables: Path, name: str, what: str) -> None:
    shutil.rmtree(results / name)
    (results / name).write_text("")
    assert lines(results) == [f"{what}: cannot be read: Not a directory"]


def test_what_stands_in_the_place_of_an_execution_is_named(results: Path, tmp_path: Path) -> None:
    folder, other = execution(results, "serial"), execution(results, "optuna")
    run = folder.parent
    folder.rename(tmp_path / "moved")
    folder.write_text("{}")
    (tmp_path / "moved").rename(os.fsdecode(bytes(run) + b"/\xff"))
    other.parent.rename(tmp_path / "elsewhere")
    other.parent.symlink_to(tmp_path / "elsewhere")
    texts = {(problem.where, problem.text) for problem in verify(results).plan.problems}
    assert {(f"runs/{run.name}/{folder.name}", "is not a folder"), (f"runs/{other.parent.name}", "is not a folder")} <= texts
    assert "is not named in UTF-8" in {text for _, text in texts}


def test_a_link_in_the_place_of_the_events_is_one_line(results: Path) -> None:
    folder = execution(results, "serial")
    (folder / "events").rename(folder / "moved")
    (folder / "events").symlink_to(folder / "events")
    (line,) = lines(results)
    assert line.endswith("events: is a link, and must be a file")


def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(results: Path) -> None:
    os.mkfifo(results / ".lock")
    assert lines(results) == []


def test_a_table_that_is_far_too_large_is_named_unread(results: Path, tables: Path) -> None:
    with (tables / "steps.csv").open("ab") as file:
        file.truncate(10**12)
    with at_most_bytes(4 * 10**9):
        assert lines(results) == ["export/steps.csv: is not what the records give; export again"]
