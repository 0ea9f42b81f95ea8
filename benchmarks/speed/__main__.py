"""`python -m benchmarks.speed [--only NAME ...] [--pairs N] [--quick] [--json FILE]`: measure, print the table, write JSON.

Exit code 0 where everything was measured (whether or not a target is met: the table says so), 1 where a benchmark failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.speed.row import SpeedRow
from benchmarks.speed.settings import ROOT, Settings
from benchmarks.speed.table import render
from tuneoff.record.environment import capture

BENCHMARKS = {  # name -> minutes that it takes by default on two cores
    "command_start": 0.2,
    "events": 2,
    "verify": 3,
    "report_cost": 2,
    "loading": 4,
    "sampler": 5,
    "training": 4,
    "inside": 2,
    "trial_start": 1,
    "flat_cost": 2,
    "fixed_cost": 4,
    "whole_command": 2,
    "adapter_cost": 50,
    "documented_cost": 30,
    "katib_cost": 6,
    "katib_polling": 3,
}
ADAPTERS = ("serial", "optuna", "ray-tune", "syne-tune", "katib")
PACKAGES = ("optuna", "ray", "syne-tune", "kubeflow-katib", "kubernetes", "torchvision")
FORMAT_VERSION = 1
QUIET_LOAD = 0.5


def main() -> int:
    options = _parse()
    signal.signal(signal.SIGTERM, _interrupt)
    path: Path = options.json or ROOT / "results" / "speed" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    names = options.only or list(BENCHMARKS)
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv[1:],
        "environment": capture(PACKAGES),
        "benchmarks": [],
        "rows": [],
    }
    folder = Path(tempfile.mkdtemp(prefix=".speed-", dir=path.parent))
    settings = Settings(folder=folder, pairs=options.pairs, is_quick=options.quick, adapters=options.adapters or ADAPTERS)
    settings.say(f"about {sum(BENCHMARKS[name] for name in names):.0f} minutes with defaults; leave the machine alone")
    load = os.getloadavg()[0]
    if load > QUIET_LOAD:
        settings.say(f"the machine is busy (load {load:.1f}): figures will be worse than they are, and intervals wide")
    rows: list[SpeedRow] = []
    failed = False

    def keep(row: SpeedRow) -> None:  # at once: an interruption loses only the row that was being measured
        rows.append(row)
        document["rows"].append(row.to_json())
        _write(path, document)

    try:
        for name in names:
            settings.say(f"{name}:")
            measured = _run(name, settings, keep)
            failed |= measured["error"] is not None
            document["benchmarks"].append(measured)
    except KeyboardInterrupt:
        settings.say("interrupted; what was finished is kept")
        failed = True
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        document["ended_at"] = datetime.now(UTC).isoformat(timespec="seconds")
        _write(path, document)
    print(render(rows))
    if options.quick:
        print("\n--quick: too few and too small measurements; no figure here means anything")
    print(f"\nraw figures: {path}")
    return 1 if failed else 0


def _run(name: str, settings: Settings, keep: Callable[[SpeedRow], None]) -> dict[str, Any]:
    """Run one benchmark, and return how long it took under what load; a fault ends this benchmark only."""
    load, started = os.getloadavg()[0], time.monotonic()
    error = None
    try:
        module = importlib.import_module(f"benchmarks.speed.{name}")
        for row in module.measure(settings):
            keep(row)
            settings.say(f"  {row.name}: {row.verdict}")
    except Exception as failure:  # the other benchmarks are to be measured all the same
        error = f"{type(failure).__name__}: {failure}"
        settings.say(f"  {name} failed: {error}")
    return {
        "name": name,
        "seconds": time.monotonic() - started,
        "load_average_before": load,
        "load_average_after": os.getloadavg()[0],
        "error": error,
    }


def _interrupt(signum: int, frame: FrameType | None) -> None:
    """End as on Ctrl-C: what was started is ended, temporary folders are removed, finished rows are kept."""
    raise KeyboardInterrupt


def _write(path: Path, document: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(document, indent=1))
    os.replace(temporary, path)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description="Measure tuneoff's own speed, side by side with bare code, and print a table of ratios.",
        epilog="example: python -m benchmarks.speed --only events command_start",
    )
    parser.add_argument("--only", nargs="+", choices=list(BENCHMARKS), metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument(
        "--adapters", nargs="+", choices=ADAPTERS, metavar="NAME", help=f"of {', '.join(ADAPTERS)} (default: all)"
    )
    parser.add_argument("--pairs", type=_positive, help="interleaved pairs of each adapter's cost (default: 20)")
    parser.add_argument("--quick", action="store_true", help="only see that everything runs; the figures mean little")
    parser.add_argument("--json", type=Path, metavar="FILE", help="raw figures (default: results/speed/<UTC time>.json)")
    options = parser.parse_args()
    if options.pairs is None:
        options.pairs = 2 if options.quick else 20
    return options


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, but got {value}")
    return value


if __name__ == "__main__":
    sys.exit(main())
