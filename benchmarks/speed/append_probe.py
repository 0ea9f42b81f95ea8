"""Append the events of trials in a process of its own: `python -m benchmarks.speed.append_probe FOLDER TRIALS`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tuneoff.record.events.writer import EventWriter

EVENTS_PER_TRIAL = 6
TRIALS_PER_BATCH = 100
CONFIGURATION = {"learning_rate": 0.0012345678, "batch_size": 64, "hidden_layers": 2, "hidden_width": 128, "dropout": 0.1}
METRICS = {"train_loss": 0.2468, "validation_loss": 0.3579, "validation_accuracy": 0.9123, "validation_macro_f1": 0.9111}


def append_trial(events: EventWriter, trial: str) -> None:
    """Append what a trial of one epoch appends."""
    events.submitted(trial, CONFIGURATION)
    events.write(
        "trial_started", trial=trial, slot=0, configuration=CONFIGURATION, digest="0123456789abcdef", seed=1234567890, threads=1
    )
    events.write("trial_loaded", trial=trial, device="cpu")
    events.write("epoch", trial=trial, epoch=1, metrics=METRICS, train_ns=123456789, validate_ns=12345678)
    events.write("reported", trial=trial, epoch=1)
    events.write("trial_ended", trial=trial, state="completed", epochs=1, cpu_ns=123456789, peak_rss_bytes=123456789)


def main(folder: Path, trials: int) -> None:
    events = EventWriter(folder, "synthetic", "worker")
    batches = []
    for batch in range(trials // TRIALS_PER_BATCH):
        started = time.perf_counter_ns()
        for number in range(TRIALS_PER_BATCH):
            append_trial(events, f"t{batch * TRIALS_PER_BATCH + number:05d}")
        batches.append((time.perf_counter_ns() - started) / (TRIALS_PER_BATCH * EVENTS_PER_TRIAL) / 1e3)
    events.close()
    print(json.dumps({"batches_us": batches}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
