"""Derive the record of a folder in a process of its own: `python -m benchmarks.speed.derive_probe FOLDER TRIALS EPOCHS`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.speed.specs import make_spec
from tuneoff.measure import derived as records_folder
from tuneoff.measure.presence import Presence, presence_of
from tuneoff.record.end import ExecutionEnd
from tuneoff.record.endings import Ruling
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import write_run


def peak_bytes() -> int:
    """Return the peak resident memory of this process (VmHWM; getrusage also counts the process before its exec)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no VmHWM")


def main(folder: Path, trials: int, epochs: int) -> None:
    spec = make_spec("serial", "null", trials=trials, epochs=epochs)
    before = peak_bytes()
    measured_from: list[float] = []

    def noting_presence(run: RunRecord) -> Presence:
        measured_from.append(time.perf_counter())  # the first of all that metrics take
        return presence_of(run)

    records_folder.presence_of = noting_presence  # type: ignore[attr-defined]
    started = time.perf_counter()
    record = records_folder.derive_folder(folder, spec, ExecutionEnd(ruling=Ruling(status="done"))).record
    derived = time.perf_counter()
    peak = peak_bytes()
    write_run(folder, record, key="")
    written = time.perf_counter()
    counted = sum(len(attempt.epochs) for trial in record.trials for attempt in trial.attempts)
    if (len(record.trials), counted) != (trials, trials * epochs):
        raise SystemExit(f"{trials} trials of {epochs} epochs were written, but {len(record.trials)} and {counted} were derived")
    print(
        json.dumps(
            {
                "derive_seconds": derived - started,
                "metrics_seconds": derived - measured_from[0],
                "write_seconds": written - derived,
                "peak_bytes": peak,
                "peak_bytes_before": before,
                "peak_bytes_after_writing": peak_bytes(),
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
