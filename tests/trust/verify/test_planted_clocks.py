"""Negative controls: clocks that were shifted, and events and samples where they cannot be, are named."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from builders.results_folders import edit, events_of, execution, lines, reseal
from builders.stored import derive_again
from tuneoff.trust.verify.results import verify


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
    edit(folder / "power.jsonl", lambda text: text + '{"type":"power","t":2000000000000,"domain":"node","joules":99999.0}\n')
    derive_again(folder)
    assert any("power.jsonl: it has a sample 824.000 s after the run" in line for line in lines(results))
