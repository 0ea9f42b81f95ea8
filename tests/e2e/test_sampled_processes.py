"""The sampler sees every process that writes events, whichever framework started it and however: by pid and start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.runs import Made, experiment, make
from tuneoff.experiment.spec import Budget
from tuneoff.record.events import schema
from tuneoff.record.samples.reader import Samples, read_samples

pytestmark = pytest.mark.slow

CASES = [("serial", "local"), ("optuna", "local"), ("ray-tune", "local"), ("syne-tune", "local"), ("katib", "emulated")]
# longer than from one look to the next: a shorter process is seen in the time of who waited for it
WORKLOAD = experiment("sleep", {"epoch_seconds": 0.3}, budget=Budget(trials=3, epochs_per_trial=2))
TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Return a run without a framework."""
    return make("serial", WORKLOAD, tmp_path_factory.mktemp("serial"))


@pytest.mark.parametrize(("adapter", "platform"), CASES)
def test_every_process_with_events_is_in_the_samples(adapter: str, platform: str, tmp_path: Path, serial: Made) -> None:
    made = serial if adapter == "serial" else make(adapter, WORKLOAD, tmp_path, platform=platform)
    assert made.record.status == "done"
    samples = read_samples(made.folder)
    assert samples is not None
    assert samples.notes == ()
    identities, seen = processes_of(made), seen_in(samples)
    assert identities - seen == set()
    shifted = {(pid, started_ns + TICK) for pid, started_ns in identities}
    assert shifted - seen == shifted, "the comparison does not tell one process from another"


def test_the_coordinator_s_last_moments_are_in_what_the_supervising_process_waited_for(serial: Made) -> None:
    made = serial
    samples = read_samples(made.folder)
    assert samples is not None
    (coordinator,) = (process.pid for process in made.events(schema.Process) if process.role == "coordinator")
    last = [usage for sample in samples.usage for usage in sample.processes if usage.pid == coordinator][-1]
    own = [usage for sample in samples.usage for usage in sample.processes if usage.pid == os.getpid()]
    assert own[-1].children_cpu_ns - own[0].children_cpu_ns >= last.cpu_ns + last.children_cpu_ns
    assert coordinator in {pid for sample in samples.usage for pid, _ in sample.gone}


def seen_in(samples: Samples) -> set[tuple[int, int]]:
    """Return (pid, start) of the processes in the samples."""
    return {(usage.pid, usage.started_ns) for sample in samples.usage for usage in sample.processes}


def processes_of(made: Made) -> set[tuple[int, int]]:
    """Return (pid, start) of the processes that wrote events."""
    return {(process.pid, process.process_started_ns) for process in made.events(schema.Process)}
