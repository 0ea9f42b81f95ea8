"""What every bare trial computes, and how a bare script tells its span. Standard library only."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path

WORKERS = 2
X_LOW, X_HIGH, K_HIGH = 1e-4, 1.0, 9  # x: log-uniform float, y: uniform float in [0, 1], k: integer from 0


def loss(configuration: Mapping[str, float], seconds: float) -> float:
    """Sleep for `seconds` (0: not at all) and return the mean of v^2 / (1 + v^2)."""
    if seconds > 0:
        time.sleep(seconds)
    return sum(value * value / (1.0 + value * value) for value in configuration.values()) / len(configuration)


def stamp(path: str) -> None:
    """Append the monotonic time (ns) at which a trial ended, for scripts whose trials share no memory with them."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, b"%d\n" % time.monotonic_ns())
    finally:
        os.close(descriptor)


def stamps(path: str) -> list[int]:
    """Return what was stamped."""
    return [int(line) for line in Path(path).read_text().split()]


def print_span(first_ns: int, last_ns: int, trials: int, requested: int) -> None:
    """Print the span from the first submission to the last end; fail where not exactly the asked trials ran."""
    if trials != requested:
        raise SystemExit(f"{requested} trials were asked for, but {trials} ran")
    print(json.dumps({"span_seconds": (last_ns - first_ns) / 1e9, "trials": trials}))
