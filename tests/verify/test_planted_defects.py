"""Negative controls: each planted defect is named, with the execution that has it and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from results_folders import Results, edit, write_examples
from tuneoff.experiment.spec import RunSpec
from tuneoff.records.folder import derive_folder
from tuneoff.records.seal import seal
from tuneoff.records.store import read_run, write_run
from tuneoff.report.export import export
from tuneoff.verify.results import verify

Plant = Callable[[Path], None]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Return a folder with both worked examples, in which nothing is wrong."""
    return write_examples(tmp_path_factory.mktemp("sound") / "results")


@pytest.fixture
def results(sound: Results, tmp_path: Path) -> Path:
    """Return a copy of it, to be damaged."""
    return Path(shutil.copytree(sound.path, tmp_path / "results"))


def execution(results: Path, adapter: str) -> Path:
    """Return the folder of example A (`serial`) or B (`optuna`)."""
    found = [path.parent for path in results.glob("runs/*/*/run.json") if read_run(path).run_spec().adapter == adapter]
    assert len(found) == 1
    return found[0]


def events_of(folder: Path, trial: str) -> Path:
    """Return the file of the process that ran a trial."""
    return next(path for path in sorted((folder / "events").glob("[wt]*")) if f'"trial":"{trial}"' in path.read_text())


def lines(results: Path) -> list[str]:
    """Return what verifying says, one line per problem."""
    found = verify(results)
    assert all("\n" not in problem.line for problem in found.problems)
    return [problem.line for problem in found.problems]


def reseal(folder: Path) -> None:
    """Write new seals into the record, as somebody would who covers a change."""
    write_run(folder, replace(read_run(folder), sealed=seal(folder)))


def derive_again(folder: Path) -> None:
    """Write a new record, as somebody would who covers a change well."""
    record = read_run(folder)
    write_run(folder, derive_folder(folder, record.run_spec(), versions=record.versions, environment=record.environment))


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
    edit(events_of(folder, "1"), lambda text: text.replace('"version":1', '"version":99', 1))


def _another_record_version(folder: Path) -> None:
    edit(folder / "run.json", lambda text: text.replace('"format_version": 1', '"format_version": 99', 1))


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
        (_another_record_version, ["run.json: has format version 99, but this tuneoff reads version 1"]),
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


# Clocks


def _shift(path: Path, seconds: float, fields: tuple[str, ...]) -> None:
    """Add to a file's times: readings (`t`) and those that its process notes of itself."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for event in found:
        for name in fields:
            if event.get(name) is not None:
                event[name] += round(seconds * 1e9)
    path.write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in found))


ALL_TIMES = ("t", "anchor_monotonic_ns", "process_started_ns", "imported_ns")


@pytest.mark.parametrize("seconds", [0.1, -0.1, 3600.0])
def test_a_shifted_clock_is_named_even_where_all_else_was_written_anew(results: Path, seconds: float) -> None:
    folder = execution(results, "serial")
    path = events_of(folder, "2")
    _shift(path, seconds, ALL_TIMES)
    derive_again(folder)
    found = [line for line in lines(results) if "its wall clock minus its monotonic clock is" in line]
    assert len(found) == 1
    assert f"run1-abc: events/{path.name}: " in found[0]
    assert f"{abs(seconds):.3f} s off that of" in found[0]


def test_times_that_left_their_anchor_are_named(results: Path) -> None:
    folder = execution(results, "serial")
    path = events_of(folder, "2")
    _shift(path, -1, ("t",))
    derive_again(folder)
    found = lines(results)
    assert any(f"events/{path.name}: its first line is -1.000 s after its clock's anchor" in line for line in found)
    assert any(f"events/{path.name}: it has an event 1.000 s before its process began" in line for line in found)


def test_a_shifted_clock_with_new_seals_alone_changes_values_too(results: Path) -> None:
    folder = execution(results, "serial")
    _shift(events_of(folder, "2"), 1, ALL_TIMES)
    reseal(folder)
    checks = {problem.check for problem in verify(results).problems}
    assert checks == {"clock", "value"}


def test_an_event_after_the_run_is_named(results: Path) -> None:
    folder = execution(results, "serial")
    path = events_of(folder, "2")
    late = {"type": "flag", "seq": 11, "t": 3600 * 10**9, "name": "late", "text": "x"}
    with path.open("a") as file:
        file.write(json.dumps({**late, "seq": len(path.read_text().splitlines())}) + "\n")
    derive_again(folder)
    found = lines(results)
    assert len(found) == 1
    assert f"events/{path.name}: it has an event 2424.000 s after the run" in found[0]


def test_samples_outside_of_the_run_are_named(results: Path) -> None:
    folder = execution(results, "serial")
    edit(folder / "power.jsonl", lambda text: text + '{"type":"power","t":2000000000000,"domain":"slot-0","watts":15.0}\n')
    derive_again(folder)
    assert any("power.jsonl: it has a sample 824.000 s after the run" in line for line in lines(results))


# The plan


def test_a_removed_run_is_named_by_what_was_planned(results: Path) -> None:
    folder = execution(results, "serial")
    shutil.rmtree(folder.parent)
    (line,) = lines(results)
    assert line.startswith(f"runs/{folder.parent.name}: planned (serial random seed 0), but it has no execution, and later runs")


def test_the_last_run_removed_is_named_where_nothing_was_interrupted(results: Path) -> None:
    folder = execution(results, "optuna")
    shutil.rmtree(folder.parent)
    (line,) = lines(results)
    assert line.startswith(f"runs/{folder.parent.name}: planned (optuna random seed 0), but it has no execution, and nothing was")


def test_a_run_that_was_never_planned_is_named(results: Path, sound: Results) -> None:
    spec: RunSpec = replace(sound.plan.runs[0].spec, seed=5)
    folder = execution(results, "serial")
    moved = results / "runs" / spec.run_id / folder.name
    shutil.copytree(folder, moved)
    derived = derive_folder(moved, spec, versions=read_run(folder).versions, environment=read_run(folder).environment)
    write_run(moved, derived)
    (moved / "spec.json").unlink()
    assert lines(results) == [f"runs/{spec.run_id}/run1-abc: its run is not in the plan"]


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"seed": 0', '"seed": 4', "matrix.json: runs[0].run_id: "),
        ('"metric": "time.jct"', '"metric": "quality.test"', "matrix.json: analysis_digest: stored "),
        ('"plan_id": "', '"plan_id": "0', "matrix.json: plan_id: stored "),
        ('"trials": 6', '"trials": 7', "matrix.json: totals.trials: stored 7, recomputed 6"),
        ('"format_version": 1', '"format_version": 99', "matrix.json: has format version 99, but this tuneoff reads version 1"),
        ('"name": "example"', '"name": "example", "x": 1', "matrix.json: x: stored 1, recomputed nothing"),
        ('"format_version": 1,', "", "matrix.json: has format version None"),
        ('"runs": [', '"runs": {', "matrix.json: is damaged"),
        ('"block": 0', '"block": 0, "extra": 1', "extra"),
    ],
)
def test_a_defect_of_the_plan_is_named(results: Path, old: str, new: str, named: str) -> None:
    edit(results / "matrix.json", lambda text: text.replace(old, new, 1))
    found = lines(results)
    assert any(named in line for line in found), found


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


# Exported tables


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_changed_table_is_named(results: Path, format: Literal["csv", "json"]) -> None:
    run_ids = [run["run_id"] for run in json.loads((results / "matrix.json").read_text())["runs"]]
    export(results, results / "export", format, run_ids)
    assert lines(results) == []
    edit(results / "export" / f"metrics.{format}", lambda text: text.replace("176000.0", "175000.0", 1))
    (line,) = lines(results)
    assert line.startswith(f"export/metrics.{format}: row 1 (run1-abc, time.jct) value: stored ")
    assert "175000.0" in line
    assert "176000.0" in line


def test_a_row_removed_from_a_table_is_named(results: Path) -> None:
    export(results, results / "export", "csv")
    edit(results / "export" / "trials.csv", lambda text: "".join(text.splitlines(keepends=True)[:-1]))
    (line,) = lines(results)
    assert line.startswith("export/trials.csv: row 6 (run1-abc, 3")
    assert line.endswith("is missing")


def test_tables_of_a_damaged_record_are_not_compared(results: Path) -> None:
    export(results, results / "export", "csv")
    _cut_record(execution(results, "serial"))
    found = verify(results)
    assert len(found.problems) == 1
    assert "export/*.csv could not be compared" in found.notes[0]
