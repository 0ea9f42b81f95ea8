"""Processes of a run are in its samples, and what the supervising process waited for; of other adapters: tests/contract."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.few_runs import assert_sampled
from contract.runs import experiment, make
from tuneoff.experiment.spec import Budget
from tuneoff.record.events import schema
from tuneoff.record.samples.reader import read_samples


@pytest.mark.slow
def test_every_process_is_sampled_and_the_coordinator_s_last_moments_are_in_what_was_waited_for(tmp_path: Path) -> None:
    made = make("serial", experiment("sleep", {"epoch_seconds": 0.3}, budget=Budget(trials=3, epochs_per_trial=2)), tmp_path)
    samples = read_samples(made.folder)
    assert_sampled(samples, made.events(schema.Process))
    assert samples is not None
    (coordinator,) = (process.pid for process in made.events(schema.Process) if process.role == "coordinator")
    last = [usage for sample in samples.usage for usage in sample.processes if usage.pid == coordinator][-1]
    own = [usage for sample in samples.usage for usage in sample.processes if usage.pid == os.getpid()]
    assert own[-1].children_cpu_ns - own[0].children_cpu_ns >= last.cpu_ns + last.children_cpu_ns
    assert coordinator in {pid for sample in samples.usage for pid, _ in sample.gone}
