"""Negative controls: each defect planted in an execution is named, with the execution that has it and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.results_folders import edit, events_of, execution, lines, reseal
from builders.stored import derive_again
from tuneoff.trust.verify.results import verify

Plant = Callable[[Path], object]


def _replaced(name: str, old: str, new: str) -> Plant:
    """Return a plant that writes something else once into a file: one of an execution, or the events of a trial."""

    def plant(folder: Path) -> None:
        edit(events_of(folder, name) if name.isdigit() else folder / name, lambda text: text.replace(old, new, 1))

    return plant


def _substituted(name: str, pattern: str, new: str) -> Plant:
    return lambda folder: edit(folder / name, lambda text: re.sub(pattern, new, text))


def _cut(find: Callable[[Path], Path], end: int) -> Plant:
    """Return a plant that keeps a file's bytes up to a place."""

    def plant(folder: Path) -> None:
        path = find(folder)
        path.write_bytes(path.read_bytes()[:end])

    return plant


EPOCH_VALUE = _replaced("1", '"validation_accuracy":0.9}', '"validation_accuracy":0.8}')
METRIC = _replaced("run.json", '"time.jct": {"value":176000.0', '"time.jct": {"value":175000.0')


def _epoch_value_resealed(folder: Path) -> None:
    EPOCH_VALUE(folder)
    reseal(folder)


def _other_scores_resealed(folder: Path) -> None:
    (folder / "test.json").write_text('{"trial": "t7", "scores": {"test_accuracy": 0.99}}')
    reseal(folder)


def _removed_trial_everywhere(folder: Path) -> None:
    events_of(folder, "2").unlink()
    coordinator = next((folder / "events").glob("coordinator-*"))
    kept = [line for line in coordinator.read_text().splitlines(keepends=True) if '"trial":"2"' not in line]
    coordinator.write_text("".join(kept))
    reseal(folder)


def _missing_line(folder: Path) -> None:
    path = events_of(folder, "1")
    before = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*before[:4], *before[5:]]))


def _ruled(**ruling: str) -> Plant:
    return _replaced("end.json", '"ruling": null', f'"ruling": {json.dumps(ruling)}')


FIRST, SECOND = "worker-101-1012000000000.jsonl", "worker-102-1012000000000.jsonl"  # of trial 1, of trial 2
PLANTS: dict[str, tuple[Plant, list[str]]] = {
    "epoch value": (EPOCH_VALUE, [f"events/{FIRST}: changed", "trials[1].attempts[1].epochs[2].metrics.validation"]),
    "epoch value resealed": (_epoch_value_resealed, ["epochs[2].metrics.validation_accuracy: stored 0.9, recomputed 0.8"]),
    "removed trial file": (
        lambda folder: events_of(folder, "2").unlink(),
        [f"events/{SECOND}: is missing", "trials[2].state", "metrics.trials.used.value"],
    ),
    "removed trial everywhere": (
        _removed_trial_everywhere,
        ['trials[2]: stored {"trial": "2"', "recomputed nothing", "events are missing before line"],
    ),
    "metric": (METRIC, ["metrics.time.jct.value: stored 175000.0, recomputed 176000.0"]),
    "removed metric": (
        _substituted("run.json", r' *"time\.jct": [^\n]*\n', ""),
        ['metrics.time.jct: stored nothing, recomputed {"value": 176000.0'],
    ),
    "trial value": (_replaced("run.json", '"value":0.95', '"value":0.96'), ["trials[1].value: stored 0.96, recomputed 0.95"]),
    "integer off by one": (
        _replaced("run.json", '"known_ns":164000000000', '"known_ns":164000000001'),
        ["best.known_ns: stored 164000000001, recomputed 164000000000"],
    ),
    "price": (_substituted("accounting.json", r'("usd_per_vcpu_hour": )[0-9.]+', r"\g<1>0.001"), ["accounting.json: changed"]),
    "power sample": (_replaced("power.jsonl", '"joules":30.0', '"joules":31.0'), ["power.jsonl: changed"]),
    "run id": (_substituted("run.json", r'(?m)^( "run_id": ")[^"]*', r"\g<1>x"), ['run_id: stored "x", recomputed ']),
    "seed": (_replaced("run.json", '"seed":0', '"seed":7'), ["specification.seed: stored 7, recomputed 0"]),
    "torn": (
        _cut(lambda folder: events_of(folder, "2"), -9),
        [f"events/{SECOND}: changed", "torn_lines: stored 0, recomputed 1"],
    ),
    "another event version": (
        _replaced("1", '"version":2', '"version":99'),
        ["event schema version 99 is not readable", f"{FIRST}: changed"],
    ),
    "another record version": (
        _replaced("end.json", '"format_version": 5', '"format_version": 99'),
        ["end.json: has format version 99, but this tuneoff reads version 5"],
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
    "missing line": (_missing_line, [f"{FIRST}: events are missing before line 5: expected seq 4, found 5"]),
    "unknown field": (
        _replaced("run.json", '"torn_lines": 0', '"torn_lines": 0, "notes": "x"'),
        ['notes: stored "x", recomputed nothing'],
    ),
    "missing field": (_replaced("run.json", ' "torn_lines": 0,\n', ""), ["torn_lines: stored nothing, recomputed 0"]),
    "unknown status": (_ruled(status="splendid"), ["end.json: is damaged: Invalid enum value 'splendid'"]),
    "failed by nobody": (
        _ruled(status="failed", reason="the machine burnt down", charged="infrastructure"),
        ["reason: stated 'the machine burnt down' (charged: infrastructure), but no event says so"],
    ),
    "killed, but by the infrastructure": (
        _ruled(status="failed", reason="its tuneoff command was killed", charged="infrastructure"),
        ["status: a run of which 'its tuneoff command was killed' holds is interrupted by the user, but it is failed by infra"],
    ),
    "cut end": (_cut(lambda folder: folder / "end.json", 500), ["end.json: is damaged: "]),
    "bytes that are no text": (lambda folder: (folder / "end.json").write_bytes(b"\xff\xfe\x00"), ["end.json: is damaged: "]),
    "no end": (lambda folder: (folder / "end.json").unlink(), ["end.json: is missing: its command was killed"]),
    "damaged prices": (lambda folder: (folder / "accounting.json").write_text("{"), ["accounting.json is damaged"]),
    "damaged samples": (_replaced("power.jsonl", '{"type":"power"', '{"type":"pover"'), ["power.jsonl line 2 is not a sample"]),
    "no event folder": (
        lambda folder: shutil.rmtree(folder / "events"),
        ["events cannot be sealed: No such file or directory"],
    ),
    "other specification": (
        _replaced("spec.json", '"seed": 0', '"seed": 8'),
        ["spec.json: changed: sealed with ", "run_id: its specification has ", "specification.seed: stored 0, recomputed 8"],
    ),
    "other test": (lambda folder: (folder / "test.json").write_text("{}"), ["test.json: was added after the seal"]),
    "other scores resealed": (
        _other_scores_resealed,
        ['test.json: trial is "t7", the events say "', "test.json: scores.test_accuracy is 0.99, the events say 0.93"],
    ),
    "other tested configuration": (
        lambda folder: (folder / "best_configuration.json").write_text('{"extra": 1}'),
        ["best_configuration.json: extra is 1, the events say nothing"],
    ),
    "other analysis": (
        _substituted("end.json", r'("analysis_digest": ")....', r"\g<1>0000"),
        ["environment.analysis_digest: stored 0000"],
    ),
    "moved": (
        lambda folder: shutil.move(folder, folder.parent / "run1-abd"),
        ['execution_id: stored "run1-abc", recomputed "run1-abd"'],
    ),
}


@pytest.mark.parametrize(("plant", "named"), PLANTS.values(), ids=PLANTS)
def test_a_defect_of_an_execution_is_named(results: Path, plant: Plant, named: list[str]) -> None:
    folder = execution(results, "serial")
    plant(folder)
    found = lines(results)
    for text in named:
        assert any(text in line for line in found), (text, found)
    place = f"runs/{folder.parent.name}/{folder.name}"
    assert {line.partition(": ")[0] for line in found} == {place if folder.exists() else place.replace("abc", "abd")}


def test_a_sound_folder_has_no_problem(results: Path) -> None:
    found = verify(results)
    assert found.is_verified
    assert [outcome.notes for outcome in found.outcomes] == [[], []]


def test_a_changed_metric_is_all_that_is_said(results: Path) -> None:
    folder = execution(results, "serial")
    METRIC(folder)
    assert lines(results) == [f"runs/{folder.parent.name}/run1-abc: metrics.time.jct.value: stored 175000.0, recomputed 176000.0"]


def test_causes_stand_before_what_they_change(results: Path) -> None:
    EPOCH_VALUE(execution(results, "serial"))
    assert [problem.check for problem in verify(results).problems] == ["seal", "value"]


def test_a_checkpoint_is_held_to_the_digest_that_the_test_took(results: Path) -> None:
    folder = execution(results, "serial")
    path = folder / "checkpoints" / "1.safetensors"
    path.parent.mkdir()
    path.write_bytes(b"weights")
    coordinator = next((folder / "events").glob("coordinator-*"))
    sha256 = "9490c1ab8d9c8a8ec22ed5fbcc0a5b36dc7e8e92eb7d4cfbfd7fc4c2de0c9e4a"
    edit(
        coordinator,
        lambda text: text.replace('"scores":{"test_accuracy"', f'"checkpoint_sha256":"{sha256}","scores":{{"test_accuracy"'),
    )
    derive_again(folder)
    (line,) = lines(results)
    assert line.endswith(f"but the test scored {sha256[:12]}")
    path.unlink()
    (line,) = lines(results)
    assert line.endswith("checkpoints/1.safetensors: is missing: the test scored it")
