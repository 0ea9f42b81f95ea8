"""How long `tuneoff list adapters` takes, from the start of the process to its end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.speed.child import child_environment
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate, side_by_side

NAME, A, B = "command_start", "wall time of `tuneoff list adapters`", "`python -c pass`, for comparison"
REPEATS = 20
TARGET = SpeedTarget("<=", 0.3)


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield one row, in seconds."""
    script = Path(sys.executable).with_name("tuneoff")
    command = [str(script), "list", "adapters"] if script.exists() else [sys.executable, "-m", "tuneoff", "list", "adapters"]
    first = subprocess.run(  # warms the caches
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=child_environment()
    )
    if first.returncode != 0:
        lines = first.stderr.strip().splitlines()
        reason = f"`tuneoff list adapters` ended with exit code {first.returncode}: {lines[-1] if lines else 'no text'}"
        yield skipped(NAME, A, reason, B, TARGET)
        return
    makers = {
        "tuneoff": lambda: _wall_seconds(command),
        "python": lambda: _wall_seconds([sys.executable, "-c", "pass"]),
    }
    taken = side_by_side(makers, settings.repeats(REPEATS))
    result = estimate(taken["tuneoff"])
    yield SpeedRow(
        name=NAME,
        a=A,
        b=B,
        unit="s",
        result=result,
        target=TARGET,
        figures={"A s": result.value, "A largest s": max(taken["tuneoff"]), "B s": estimate(taken["python"]).value},
        samples={f"{side}_seconds": values for side, values in taken.items()},
    )


def _wall_seconds(command: Sequence[str]) -> float:
    environment = child_environment()
    started = time.perf_counter()
    subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env=environment
    )
    return time.perf_counter() - started
