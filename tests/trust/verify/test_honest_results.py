"""What honest runs leave is verified, whatever came in between: kills, interruptions, older records, several hosts."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import tuneoff
from builders.event_logs import Log, Writer, example_a, example_b
from builders.results_folders import Results, edit, write_examples
from builders.specs import make_spec
from tuneoff.base.layout import RECORD
from tuneoff.errors import ResultsError
from tuneoff.experiment.metric_catalogue import METRICS
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.stored import read_run
from tuneoff.record.end import read_end, write_end
from tuneoff.record.endings import KILLED, Ruling
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.trust.verify.results import run_all, verify


def left(tmp_path: Path, log: Log, spec: RunSpec, ruling: Ruling | None = None) -> tuple[Path, Path]:
    """Return a folder of results with one execution, which left these events, and the folder of that."""
    results = Results(tmp_path / "results", [spec])
    return results.path, results.add_log(spec, log, ruling)


def test_one_process_or_several_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = write_examples(tmp_path / "results", seeds=range(5))
    edit(next(results.path.glob("runs/*/*/run.json")), lambda text: text.replace('"torn_lines": 0', '"torn_lines": 1'))
    told: list[tuple[int, int]] = []
    one = verify(results.path)  # so few are not shared out
    monkeypatch.setattr("tuneoff.trust.verify.results.usable_processes", lambda tasks: 3)
    several = verify(results.path, lambda done, total: told.append((done, total)))
    assert one == several
    assert len(one.problems) == 1
    assert (told[0], told[-1]) == ((0, 6), (6, 6))


def _die(task: int) -> int:
    if task == 2 and os.getpid() != _die_parent:
        os._exit(9)
    return task * task


_die_parent = os.getpid()


def test_work_of_a_process_that_died_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuneoff.trust.verify.results.usable_processes", lambda tasks: 2)
    assert run_all(_die, list(range(9)), [1] * 9) == [number * number for number in range(9)]


def test_a_killed_run_whose_events_are_done_is_told(tmp_path: Path) -> None:
    """Its command may have been killed just before it wrote the record; or the record was changed: nothing tells which."""
    results, _ = left(tmp_path, *example_a(), KILLED)
    found = verify(results)
    assert found.is_verified
    assert found.outcomes[0].notes[0].startswith("its events tell of a run that is done: ")


def test_a_torn_last_line_that_the_record_knows_is_no_defect(tmp_path: Path) -> None:
    log, spec = example_b()
    results = Results(tmp_path / "results", [spec])
    folder = results.folder(spec)
    path = sorted(log.save(folder / "events").glob("trial-*"))[0]
    path.write_bytes(path.read_bytes()[:-5])
    results.finish(spec)
    assert read_run(folder).torn_lines == 1
    assert verify(results.path).is_verified


def test_the_order_of_files_does_not_matter(tmp_path: Path) -> None:
    log, spec = example_b()
    results, folder = left(tmp_path, log, spec)
    random.Random(0).shuffle(log.writers)
    shutil.rmtree(folder / "events")
    log.save(folder / "events")
    assert verify(results).is_verified


def another_clock() -> tuple[Log, RunSpec]:
    log = Log()
    log.step("deploy", 0, 1)
    log.submit("1", 2)
    pod = log.process("pod", 3, host="node", boot="boot-2", clock_shift=50_000)
    pod.start("1", 4, slot=0)
    pod.epoch("1", 1, 5, reported=5.5)
    pod.end("1", 6, "completed", 1)
    log.step("undeploy", 8, 9)
    return log, make_spec(trials=1, epochs=1)


def move(writer: Writer, field: str, by_ns: int) -> None:
    """Change what a process notes of its own clocks."""
    writer.process = msgspec.structs.replace(writer.process, **{field: getattr(writer.process, field) + by_ns})
    writer.events[0] = writer.process


def slowly_turned_wall_clock() -> tuple[Log, RunSpec]:
    log, spec = example_a()
    move(log.writers[1], "anchor_wall_ns", 15_000_000)
    return log, spec


def slept() -> tuple[Log, RunSpec]:
    """There the kernel counts the starts of processes with the time that it slept, and monotonic readings without."""
    log, spec = example_b()
    for writer in log.writers:
        move(writer, "process_started_ns", 3600 * 10**9)
    return log, spec


@pytest.mark.parametrize("host", [another_clock, slowly_turned_wall_clock, slept])
def test_clocks_of_a_host_are_no_defect(tmp_path: Path, host: Callable[[], tuple[Log, RunSpec]]) -> None:
    results, _ = left(tmp_path, *host())
    assert verify(results).is_verified


@pytest.mark.parametrize("content", ["", "{", "[" * 200_000, '{\n "format_version": 5,\n "key": "of another tuneoff"}'])
def test_a_stored_record_that_no_reader_takes_is_told_and_no_defect(tmp_path: Path, content: str) -> None:
    results = write_examples(tmp_path / "results")
    folder = results.folder(results.plan.runs[0].spec)
    (folder / "run.json").write_text(content)
    found = verify(results.path)
    assert found.is_verified
    assert found.outcomes[0].notes == ["run.json is damaged, or of other files or another tuneoff: it is not used"]
    (folder / "run.json").unlink()
    assert [outcome.notes for outcome in verify(results.path).outcomes] == [[], []]


def test_a_folder_in_use_is_verified_as_far_as_it_is(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results")
    (results.folder(results.plan.runs[1].spec) / "end.json").unlink()
    with (results.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = verify(results.path)
    assert found.is_verified
    assert "works in this folder now" in found.notes[0]
    assert [outcome.notes for outcome in found.outcomes if outcome.status is None] == [["no end.json yet"]]


def test_an_execution_that_was_killed_while_it_was_made_is_told(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results")
    spec = results.plan.runs[0].spec
    (results.folder(spec, "empty-1") / "events").mkdir(parents=True)
    found = verify(results.path)
    assert found.is_verified
    assert [outcome.notes for outcome in found.outcomes if outcome.status is None] == [
        ["empty: its command ended while it was made; `--resume` ends it"]
    ]


def test_what_an_earlier_tuneoff_stated_to_be_emulated_has_a_flag_and_is_verified(tmp_path: Path) -> None:
    results = write_examples(tmp_path / "results")
    plan = json.loads((results.path / "matrix.json").read_text())
    for run in plan["runs"]:
        run["emulated"] = True
    (results.path / "matrix.json").write_text(json.dumps(plan))
    for path in results.path.glob("runs/*/*/end.json"):
        record = read_run(path.parent)
        assert "emulated_platform" not in {flag.name for flag in record.flags}
        write_end(path.parent, msgspec.structs.replace(read_end(path.parent), emulated=True))
        old_key = hashlib.sha256(path.read_bytes() + " ".join((tuneoff.__version__, *METRICS)).encode()).hexdigest()[:32]
        text = re.sub('"key": "[0-9a-f]+"', f'"key": "{old_key}"', (path.parent / RECORD).read_text())
        (path.parent / RECORD).write_text(text)  # as that tuneoff left it: of these files, without the flag
        assert [flag.name for flag in read_run(path.parent).flags if flag.name in EXCLUDING] == ["emulated_platform"]
    assert verify(results.path).is_verified


def test_a_folder_without_a_plan_is_no_results_folder(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="is not a results folder"):
        verify(tmp_path)
