"""What the sampler costs: its own threads' CPU time, at its default rate, with 50 processes in the tree."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate

PROCESSES, SECONDS, REPEATS = 50, 20.0, 6
TARGET = SpeedTarget("<=", 1.0)
KINDS = {"plain": "plain interpreters", "torch": "processes forked from one with torch, as workers are"}


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row per kind of processes."""
    for kind, text in KINDS.items():
        name, a = f"sampler.{kind}", f"CPU time of the sampler's threads over wall time; in the tree {PROCESSES} {text}"
        if kind == "torch" and importlib.util.find_spec("torch") is None:
            yield skipped(name, a, "torch is not installed", target=TARGET)
            continue
        try:
            yield _row(name, a, kind, settings)
        except MeasurementError as error:
            yield skipped(name, a, str(error), target=TARGET)


def _row(name: str, a: str, kind: str, settings: Settings) -> SpeedRow:
    repeats, seconds = settings.repeats(REPEATS), SECONDS / 4 if settings.is_quick else SECONDS
    probes: list[dict[str, Any]] = []
    for number in range(repeats):
        folder = Path(tempfile.mkdtemp(prefix="sampler-", dir=settings.folder))
        try:
            arguments = [kind, str(PROCESSES), str(seconds), str(folder)]
            probe, _ = run_module("benchmarks.speed.sampler_probe", arguments)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        probes.append(probe)
        settings.say(f"  {name}: {number + 1}/{repeats}: {probe['percent']:.2f} %, {probe['looks_per_second']:.1f} looks per s")
    percents = [probe["percent"] for probe in probes]
    figures = {
        "looks per s (5 asked)": "looks_per_second",
        "CPU us per look": "us_per_look",
        "processes seen": "processes",
        "looks at PSS": "pss_looks",
        "file bytes per s": "bytes_per_second",
        "RSS of the tree MB": "rss_mb",
    }
    return SpeedRow(
        name=name,
        a=a,
        unit="%",
        result=estimate(percents),
        target=TARGET,
        figures={text: estimate([probe[key] for probe in probes]).value for text, key in figures.items()},
        samples={"percent_of_one_core": percents},
        note="where a look costs more than 0.7 % of a core at the asked rate, the sampler looks more rarely",
    )
