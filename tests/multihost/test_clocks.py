"""A host whose clocks are 3 s ahead and run 2 % too fast (libfaketime): its events are dated right within what is stated."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from namespaced_hosts import REPOSITORY, hosts
from tuneoff.record.events.reader import Alignment, EventLog
from tuneoff.record.events.schema import Event, Flag, Process

pytestmark = pytest.mark.multihost

LIBRARY = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
COUNT = 8
SOURCES = ":".join(str(REPOSITORY / name) for name in ("core", "adapters", "workloads", "tests"))


def dated(log: EventLog) -> tuple[list[int], list[int], int]:
    """Return when the host's events were on the coordinator's clock and on its own wall clock, and the uncertainty (ns)."""
    events: list[tuple[Process, Event]] = list(log)
    alignment = Alignment(process for process, event in events if isinstance(event, Process))
    flags = [(process, event) for process, event in events if isinstance(event, Flag)]
    times = [event.t + alignment.offset_ns(process) for process, event in flags]
    return times, [int(event.text) for _, event in flags], alignment.uncertainty_ns


@pytest.mark.skipif(LIBRARY is None, reason="not installed: libfaketime; run: .ci/install 'hosts for tests' libfaketime")
def test_events_of_a_host_with_other_clocks_are_dated_within_the_stated_uncertainty() -> None:
    with hosts(2) as two:
        python = two.shared / "python"
        python.write_text(f"#!/bin/sh\nLD_PRELOAD={LIBRARY} FAKETIME='+3s x1.02' exec {sys.executable} \"$@\"\n")
        python.chmod(0o755)
        words = f"{sys.executable} -m multihost.dated_events ask {two.shared} '{two.template}' {python} {COUNT}"
        said = two.run("h1", f"cd /; PYTHONPATH={SOURCES} {words}", seconds=90).stdout
        told = json.loads(said)
        log = EventLog(Path(told["run_dir"]) / "events")
        times, walls, uncertainty_ns = dated(log)
        assert len(times) == COUNT
        late = [max(before - t, t - after, 0) for t, (before, after, _) in zip(times, told["asked"], strict=True)]
        assert max(late) <= uncertainty_ns < 1_000_000_000
        assert max(late) > 20_000_000  # the drift: the uncertainty is not there for nothing
        assert sorted(times) == times
        assert all(wall - after > 2_500_000_000 for wall, (_, _, after) in zip(walls, told["asked"], strict=True))
