"""What a trial's pod writes into its log, as bytes without line ends: records, and `logged` as a log has them."""

from __future__ import annotations

import json
from typing import Any

from tuneoff.base import clock
from tuneoff.record.events.schema import SCHEMA_VERSION
from tuneoff.record.events.stream import framed

EXECUTION = "5f0c1d2e3f4a-1a2b3c"


def logged(*records: bytes, execution: str = EXECUTION) -> list[bytes]:
    """Return the lines of a log with records; the empty lines between them are left out."""
    return [framed(record, execution).strip(b"\n") for record in records]


def line(type_: str, seq: int, **fields: Any) -> bytes:
    t = fields.pop("t", clock.monotonic_ns())
    return json.dumps({"type": type_, "seq": seq, "t": t, **fields}, separators=(",", ":")).encode()


def header(execution: str = EXECUTION, **changes: Any) -> bytes:
    now = clock.monotonic_ns()
    fields = {
        "version": SCHEMA_VERSION,
        "role": "pod",
        "pid": 7,
        "host": "pod",
        "boot_id": clock.boot_id(),
        "execution_id": execution,
        "anchor_monotonic_ns": now,
        "anchor_wall_ns": now,
        "anchor_width_ns": 1,
        "process_started_ns": now,
        **changes,
    }
    return line("process", 0, **fields)


def started(trial: str, configuration: dict[str, Any] | None = None, **changes: Any) -> bytes:
    fields = {"slot": 0, "configuration": configuration or {}, "digest": "d", "seed": 1, "threads": 1, **changes}
    return line("trial_started", 1, trial=trial, **fields)


def epoch(trial: str, number: int, value: float, metric: str = "validation_loss", seq: int | None = None) -> bytes:
    metrics = {metric: value}
    return line(
        "epoch", 1 + number if seq is None else seq, trial=trial, epoch=number, metrics=metrics, train_ns=1, validate_ns=1
    )


def own_end(trial: str, seq: int, state: str = "completed", epochs: int = 3, **fields: Any) -> bytes:
    return line("trial_ended", seq, trial=trial, state=state, epochs=epochs, **fields)


def whole_log(
    trial: str, values: list[float], configuration: dict[str, Any] | None = None, execution: str = EXECUTION
) -> list[bytes]:
    """Return the log of a trial that completed, with something that its workload printed."""
    epochs = [epoch(trial, number, value) for number, value in enumerate(values, 1)]
    end = own_end(trial, 2 + len(values), epochs=len(values))
    first, *others = logged(header(execution), started(trial, configuration), *epochs, end, execution=execution)
    return [first, b"hello", *others]
