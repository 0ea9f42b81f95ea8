"""The limits of a slot, as a trial's process puts them in force on itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trial_runs import events_of, trial_context
from tuneoff.base.process_limits import NOT_JOINED, NOT_PINNED, SlotLimits, run_on
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events import schema
from tuneoff.run.trial.run_trial import Decision, run_trial
from tuneoff.run.trial.trial_process import trial_process

ALL = sorted(os.sched_getaffinity(0))
NOWHERE = 100_000  # no machine has a processor of this number

needs_two = pytest.mark.skipif(len(ALL) < 2, reason="needs two processors")


@pytest.fixture(autouse=True)
def _unpinned() -> Iterator[None]:
    yield
    run_on(ALL)


def run(context: TrialContext, trial: str = "t0") -> None:
    run_trial(context, trial, {"x": 0.5}, lambda epoch, metrics: Decision.CONTINUE)


def pinned_to(*processors: int) -> tuple[SlotLimits, ...]:
    return tuple(SlotLimits(processors=(processor,)) for processor in processors)


@needs_two
def test_all_threads_of_the_process_and_later_ones_run_on_the_slot_s_processors() -> None:
    done = threading.Event()
    earlier = threading.Thread(target=done.wait)
    earlier.start()
    try:
        assert run_on([ALL[1]]) is None
        later = threading.Thread(target=done.wait)
        later.start()
        assert earlier.native_id is not None
        assert later.native_id is not None
        for thread in (os.getpid(), earlier.native_id, later.native_id):
            assert os.sched_getaffinity(thread) == {ALL[1]}
        done.set()
        later.join()
    finally:
        done.set()
        earlier.join()


@needs_two
def test_a_process_that_changes_its_slot_changes_its_processors(tmp_path: Path) -> None:
    context = trial_context(tmp_path, slots=2, limits=pinned_to(*ALL[:2]))
    for slot in (0, 1, 0):
        trial_process(context, slot=slot).preferred_slot = slot
        run(context, f"t{slot}")
        assert os.sched_getaffinity(0) == {ALL[slot]}
    assert [event.slot for event in events_of(tmp_path, schema.TrialStarted)] == [0, 1, 0]
    assert {event.cpus_allowed for event in events_of(tmp_path, schema.TrialStarted)} == {1}


@pytest.mark.parametrize("kind", ["memory_cgroup", "cpu_cgroup"])
def test_a_group_that_cannot_be_entered_is_flagged_and_the_trial_runs(tmp_path: Path, kind: str) -> None:
    run(trial_context(tmp_path, limits=(SlotLimits(**{kind: str(tmp_path / "none")}),)))  # type: ignore[arg-type]
    (flag,) = events_of(tmp_path, schema.Flag)
    assert (flag.name, flag.text) == (NOT_JOINED, f"{tmp_path / 'none'}: No such file or directory")
    (end,) = events_of(tmp_path, schema.TrialEnded)
    assert end.state == "completed"


def test_processors_that_cannot_be_used_are_flagged_and_the_trial_runs(tmp_path: Path) -> None:
    run(trial_context(tmp_path, limits=pinned_to(NOWHERE)))
    (flag,) = events_of(tmp_path, schema.Flag)
    assert (flag.name, flag.text) == (NOT_PINNED, f"processors {NOWHERE}: Invalid argument")
    (started,) = events_of(tmp_path, schema.TrialStarted)
    assert started.cpus_allowed == len(ALL)


ORPHAN = """
import os, sys, time
from tuneoff.base.process_limits import PARENT, die_with_parent
while os.getppid() == int(sys.argv[1]) and sys.argv[2] == "orphaned":
    time.sleep(0.01)
die_with_parent()
print("lives", PARENT in os.environ, flush=True)
"""
STARTER = """
import os, subprocess, sys
from tuneoff.base.process_limits import as_parent
told = as_parent() if sys.argv[3] == "told" else {}
process = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid()), sys.argv[2]], env={**os.environ, **told})
if sys.argv[2] != "orphaned":
    process.wait()
"""


@pytest.mark.parametrize(
    ("state", "told", "output"),
    [("orphaned", "told", ""), ("orphaned", "untold", "lives False\n"), ("with its parent", "told", "lives False\n")],
)
def test_a_process_whose_parent_died_before_it_could_ask_the_kernel_dies_too(state: str, told: str, output: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STARTER, ORPHAN, state, told], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    assert done.stdout == output
