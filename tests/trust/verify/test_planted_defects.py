"""Negative controls: each defect planted in an execution is named, with the execution that has it and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from builders.results_folders import derive_again, edit, events_of, execution, lines, reseal
from tuneoff.record.store import read_run, write_run
from tuneoff.trust.verify.results import verify

Plant = Callable[[Path], None]


def _epoch_value(folder: Path) -> None:
    edit(events_of(folder, "1"), lambda text: text.replace('"validation_accuracy":0.9}', '"validation_accuracy":0.8}', 1))


def _epoch_value_resealed(folder: Path) -> None:
    _epoch_value(folder)
    reseal(folder)


def _removed_trial_file(folder: Path) -> None:
    events_of(folder, "2").unlink()


def _removed_trial_everywhere(folder: Path) -> None:
    events_of(folder, "2").unlink()
    coordinator = next((folder / "events").glob("coordinator-*"))
    kept = [line for line in coordinator.read_text().splitlines(keepends=True) if '"trial":"2"' not in line]
    coordinator.write_text("".join(kept))
    reseal(folder)


def _metric(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"time.jct": {"value":176000.0', '"time.jct": {"value":175000.0'))


def _removed_metric(folder: Path) -> None:
    edit(folder / "run.json", lambda text: re.sub(r' *"time\.jct": [^\n]*\n', "", text))


def _trial_value(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"value":0.95', '"value":0.96', 1))


def _integer_off_by_one(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"known_ns":164000000000', '"known_ns":164000000001'))


def _price(folder: Path) -> None:
    edit(folder / "accounting.json", lambda text: re.sub(r'("usd_per_vcpu_hour": )[0-9.]+', r"\g<1>0.001", text))


def _power_sample(folder: Path) -> None:
    edit(folder / "power.jsonl", lambda text: text.replace('"watts":40.0', '"watts":41.0', 1))


def _seed(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"seed":0', '"seed":7', 1))


def _torn(folder: Path) -> None:
    path = events_of(folder, "2")
    path.write_bytes(path.read_bytes()[:-9])


def _another_event_version(folder: Path) -> None:
    edit(events_of(folder, "1"), lambda text: text.replace('"version":3', '"version":99', 1))


def _another_record_version(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"format_version": 2', '"format_version": 99', 1))


def _another_sample_version(folder: Path) -> None:
    edit(folder / "power.jsonl", lambda text: text.replace('"version":1', '"version":99', 1))


def _another_price_version(folder: Path) -> None:
    edit(folder / "accounting.json", lambda text: text.replace("{", '{"format_version": 99, ', 1))


def _added_file(folder: Path) -> None:
    shutil.copy(events_of(folder, "1"), folder / "events" / "worker-999-1.jsonl")


def _foreign_events(folder: Path) -> None:
    edit(events_of(folder, "2"), lambda text: text.replace('"execution_id":"run1-abc"', '"execution_id":"run9-xyz"'))


def _missing_line(folder: Path) -> None:
    path = events_of(folder, "1")
    before = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*before[:4], *before[5:]]))


def _unknown_field(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"torn_lines": 0', '"torn_lines": 0, "notes": "x"'))


def _missing_field(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace(' "torn_lines": 0,\n', ""))


def _unknown_status(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"status": "done"', '"status": "splendid"'))


def _failed_by_nobody(folder: Path) -> None:
    record = read_run(folder)
    write_run(folder, replace(record, status="failed", reason="the machine burnt down", charged="infrastructure"))


def _cut_record(folder: Path) -> None:
    path = folder / "run.json"
    path.write_bytes(path.read_bytes()[:5000])


def _bytes_that_are_no_text(folder: Path) -> None:
    (folder / "run.json").write_bytes(b"\xff\xfe\x00")


def _no_record(folder: Path) -> None:
    (folder / "run.json").unlink()


def _damaged_prices(folder: Path) -> None:
    (folder / "accounting.json").write_text("{")


def _damaged_samples(folder: Path) -> None:
    edit(folder / "power.jsonl", lambda text: text.replace('{"type":"power"', '{"type":"pover"', 1))


def _no_event_folder(folder: Path) -> None:
    shutil.rmtree(folder / "events")


def _other_specification(folder: Path) -> None:
    edit(folder / "spec.json", lambda text: text.replace('"seed": 0', '"seed": 8', 1))


def _other_test(folder: Path) -> None:
    result = {"trial": "1", "scores": {"test_accuracy": 0.99}, "checkpoint_sha256": None, "device": "cpu"}
    (folder / "test.json").write_text(json.dumps(result))
    reseal(folder)


def _other_analysis(folder: Path) -> None:
    edit(folder / "run.json", lambda text: re.sub(r'("analysis_digest":")....', r"\g<1>0000", text))


def _moved(folder: Path) -> None:
    shutil.move(folder, folder.parent / "run1-abd")


@pytest.mark.parametrize(
    ("plant", "named"),
    [
        (_epoch_value, ["events/worker-101-1012000000000.jsonl: changed", "trials[1].attempts[1].epochs[2].metrics.validation"]),
        (_epoch_value_resealed, ["epochs[2].metrics.validation_accuracy: stored 0.9, recomputed 0.8"]),
        (
            _removed_trial_file,
            ["events/worker-102-1012000000000.jsonl: is missing", "trials[2].state", "metrics.trials.used.value"],
        ),
        (_removed_trial_everywhere, ['trials[2]: stored {"trial": "2"', "recomputed nothing", "events are missing before line"]),
        (_metric, ["metrics.time.jct.value: stored 175000.0, recomputed 176000.0"]),
        (_removed_metric, ['metrics.time.jct: stored nothing, recomputed {"value": 176000.0']),
        (_trial_value, ["trials[1].value: stored 0.96, recomputed 0.95"]),
        (_integer_off_by_one, ["best.known_ns: stored 164000000001, recomputed 164000000000"]),
        (_price, ["accounting.json: changed"]),
        (_power_sample, ["power.jsonl: changed"]),
        (_seed, ["run_id: stored ", "spec.json: run.seed is 0, run.json has 7"]),
        (_torn, ["events/worker-102-1012000000000.jsonl: changed", "torn_lines: stored 0, recomputed 1"]),
        (_another_event_version, ["event schema version 99 is not readable", "worker-101-1012000000000.jsonl: changed"]),
        (_another_record_version, ["run.json: has format version 99, but this tuneoff reads version 2"]),
        (_another_sample_version, ["power.jsonl has version 99, but this tuneoff reads version 1"]),
        (_another_price_version, ["accounting.json has format version 99, but this tuneoff reads version 1"]),
        (_added_file, ["events/worker-999-1.jsonl: was added after the seal"]),
        (_foreign_events, ["worker-102-1012000000000.jsonl: it is of execution run9-xyz"]),
        (_missing_line, ["worker-101-1012000000000.jsonl: events are missing before line 5: expected seq 4, found 5"]),
        (_unknown_field, ['notes: stored "x", recomputed nothing']),
        (_missing_field, ["torn_lines: stored nothing, recomputed 0"]),
        (_unknown_status, ["run.json: Invalid enum value 'splendid'"]),
        (_failed_by_nobody, ["reason: stored 'the machine burnt down' (charged: infrastructure), but no event says so"]),
        (_cut_record, ["run.json: is no run record: Input data was truncated"]),
        (_bytes_that_are_no_text, ["run.json: is no run record"]),
        (_no_record, ["run.json: is missing: its command was killed"]),
        (_damaged_prices, ["accounting.json is damaged"]),
        (_damaged_samples, ["power.jsonl line 2 is no sample"]),
        (_no_event_folder, ["the events folder events cannot be read: No such file or directory"]),
        (_other_specification, ["spec.json: run.seed is 8, run.json has 0"]),
        (_other_test, ["test.json: scores.test_accuracy is 0.99, the events say 0.93"]),
        (_other_analysis, ["environment.analysis_digest: stored 0000"]),
        (_moved, ['execution_id: stored "run1-abc", recomputed "run1-abd"']),
    ],
    ids=lambda item: item.__name__.strip("_") if callable(item) else "",
)
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
    _metric(folder)
    assert lines(results) == [f"runs/{folder.parent.name}/run1-abc: metrics.time.jct.value: stored 175000.0, recomputed 176000.0"]


def test_causes_stand_before_what_they_change(results: Path) -> None:
    _epoch_value(execution(results, "serial"))
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
