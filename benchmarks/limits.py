"""What a limit of processors does to a framework's overhead: no limit, a quota and affinity, side by side.

`python -m benchmarks.limits [--pairs N] [--adapters NAME ...] [--json FILE]`: interleaved runs on `null` with two workers, a
table, and the raw figures. The ratios are judged as the reports judge pairs: Hodges-Lehmann on log ratios, 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.speed.child import MeasurementError
from benchmarks.speed.settings import ROOT, Settings
from benchmarks.speed.sides import FRAMEWORKS, Side, run_tuneoff, why_missing
from benchmarks.speed.statistics import side_by_side
from tuneoff.base.output import columns
from tuneoff.experiment.spec import CpuLimit
from tuneoff.judge.stats.location import Interval, median
from tuneoff.judge.stats.paired import judge
from tuneoff.record.environment import capture

PAIRS = 12
TRIALS = {"serial": 400, "optuna": 200, "ray-tune": 80, "syne-tune": 8}  # null trials of a run: seconds of them
LIMITS: tuple[CpuLimit, ...] = ("none", "quota", "affinity")
CONFIDENCE = 0.95
FORMAT_VERSION = 1


def main() -> int:
    options = _parse()
    path: Path = options.json or ROOT / "results" / "limits.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".limits-", dir=path.parent))
    settings = Settings(folder=folder)
    adapters = [
        framework.adapter for framework in FRAMEWORKS if framework.adapter in options.adapters and why_missing(framework) is None
    ]
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "environment": capture(("optuna", "ray", "syne-tune")),
        "trials": {name: TRIALS[name] for name in adapters},
        "runs": [],
    }
    try:
        for name in adapters:  # the first run of each finds cold caches; where a limit cannot be put in force it ends here
            for first in LIMITS[1:]:
                _run(name, first, settings)
        sides = {f"{name}/{limit}": partial(_run, name, limit, settings) for name in adapters for limit in LIMITS}

        def keep(number: int, side: str, run_side: Side) -> None:
            adapter, _, limit = side.partition("/")
            overhead, in_force = run_side.details["overhead_per_trial_ms"], run_side.details["cpu_limit"]
            settings.say(
                f"  pair {number + 1}/{options.pairs}: {adapter}, {in_force}: {overhead:.2f} ms, load {os.getloadavg()[0]:.1f}"
            )
            document["runs"].append(
                {
                    "pair": number,
                    "adapter": adapter,
                    "limit": limit,
                    "in_force": in_force,
                    "overhead_per_trial_ms": overhead,
                    "span_seconds": run_side.span_seconds,
                    "load_average": os.getloadavg()[0],
                }
            )
            path.write_text(json.dumps(document, indent=1))

        side_by_side(sides, options.pairs, keep)
    except MeasurementError as error:
        print(f"limits: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(table(document["runs"])))
    print(f"\nraw figures: {path}")
    return 0


def table(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the lines of the table; `runs`: `pair`, `adapter`, `limit` and `overhead_per_trial_ms` of each."""
    rows = []
    for adapter in dict.fromkeys(run["adapter"] for run in runs):
        figures = {
            limit: [
                run["overhead_per_trial_ms"]
                for run in sorted(runs, key=lambda run: int(run["pair"]))
                if (run["adapter"], run["limit"]) == (adapter, limit)
            ]
            for limit in LIMITS
        }
        cells = [_text(median(figures[limit], CONFIDENCE)) for limit in LIMITS]
        ratios = [_text(ratio(figures[limit], figures["none"])) for limit in LIMITS[1:]]
        rows.append((adapter, str(len(figures["none"])), *cells, *ratios))
    head = ("overhead per trial, ms", "pairs", *LIMITS, *(f"{limit} / none" for limit in LIMITS[1:]))
    return columns(head, rows).splitlines()


def ratio(figures: Sequence[float], bases: Sequence[float]) -> Interval:
    """Return how many times the base the paired figures are, with the interval that decides a verdict."""
    logs = [math.log(figure / base) for figure, base in zip(figures, bases, strict=True)]
    interval = judge(logs, margin=None, alpha=1 - CONFIDENCE).interval
    low, estimate, high = (math.exp(value) for value in (interval.low, interval.estimate, interval.high))
    return Interval(estimate=estimate, low=low, high=high, confidence=CONFIDENCE, n=interval.n, method=interval.method)


def _run(adapter: str, limit: CpuLimit, settings: Settings) -> Side:
    return run_tuneoff(adapter, "null", TRIALS[adapter], settings, cpu_limit=limit)


def _text(interval: Interval) -> str:
    return f"{interval.estimate:.3g} [{interval.low:.3g}, {interval.high:.3g}]"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits",
        description="Measure overhead per trial under each limit of processors, interleaved; 15 minutes on two quiet cores.",
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"runs per framework and limit (default: {PAIRS})")
    parser.add_argument("--adapters", nargs="+", choices=list(TRIALS), default=list(TRIALS), metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="raw figures (default: results/limits.json)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
