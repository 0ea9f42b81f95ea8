"""What `tuneoff.load` costs: over a million trial records beside a plain read of the same columns, and from records alone."""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import PairedEstimate, estimate, ratios, side_by_side
from tuneoff.base.commands import install_command

RUNS, TRIALS = 500, 2_000
ROUNDS = 9
RECORD_RUNS, EPOCHS = 50, 1  # the folder without an export: 100,000 trials
RATIO_TARGET, MEMORY_TARGET = SpeedTarget("<=", 3.0), SpeedTarget("<=", 2000.0)
SIDES = {
    "load.summary": ("summary", "plain summary", "`tuneoff.load(DIR).summary()`", "`pandas.read_parquet` of its columns"),
    "load.all": ("all", "plain all", "`tuneoff.load(DIR)`: `.trials`, then `.summary()`", "`pandas.read_parquet` of all columns"),
}


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield ratios and memory over an export, then seconds and memory over records."""
    missing = [name for name in ("pandas", "pyarrow") if importlib.util.find_spec(name) is None]
    if missing:
        reason = f"the package {missing[0]} is not installed; run: {install_command('tuneoff[export]')}"
        yield skipped("load.summary", SIDES["load.summary"][2], reason, target=RATIO_TARGET)
        return
    folder = Path(tempfile.mkdtemp(prefix="loading-", dir=settings.folder))
    try:
        yield from _exported(settings, folder / "exported")
        yield from _records(settings, folder / "records")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _exported(settings: Settings, folder: Path) -> Iterator[SpeedRow]:
    from benchmarks.speed.synthetic_export import write_export

    runs = settings.repeats(RUNS)
    path = write_export(folder, runs, TRIALS)
    over = f"over a current export of {runs * TRIALS:,} trials of {runs:,} runs"
    size_mb = path.stat().st_size / 1e6
    peaks: list[float] = []
    for name, (ours, plain, a, b) in SIDES.items():
        names = {"a": ours, "b": plain, "control": plain}
        sides = {side: partial(_probe, what, folder, runs * TRIALS) for side, what in names.items()}
        try:
            probes_of = side_by_side(sides, 2 if settings.is_quick else ROUNDS, partial(_say, name, settings))
        except MeasurementError as error:
            yield skipped(name, f"{a} {over}", str(error), b, RATIO_TARGET)
            continue
        seconds = {side: [probe["seconds"] for probe in probes] for side, probes in probes_of.items()}
        peaks = [probe["peak_bytes"] / 1e6 for probe in probes_of["a"]]
        yield SpeedRow(
            name=name,
            a=f"{a} {over}",
            b=b,
            result=estimate(ratios(seconds["a"], seconds["b"])),
            target=RATIO_TARGET,
            control=estimate(ratios(seconds["control"], seconds["b"])),
            figures={
                "A ms": 1e3 * estimate(seconds["a"]).value,
                "B ms": 1e3 * estimate(seconds["b"]).value,
                "B's peak MB": estimate([probe["peak_bytes"] / 1e6 for probe in probes_of["b"]]).value,
                "file MB": size_mb,
            },
            samples={f"{side} seconds": values for side, values in seconds.items()},
            note="The trials are drawn at random, their records hold none. A also asks 3 files of each run whether they changed.",
        )
    if peaks:
        yield SpeedRow(
            name="load.memory",
            a=f"{SIDES['load.all'][2]} {over}: peak resident memory",
            unit="MB",
            result=estimate(peaks),
            target=MEMORY_TARGET,
            samples={"peak_mb": peaks},
        )


def _records(settings: Settings, folder: Path) -> Iterator[SpeedRow]:
    from benchmarks.speed.synthetic_results import write_results

    runs = settings.repeats(RECORD_RUNS)
    size_mb = write_results(folder, runs, TRIALS, EPOCHS) / 1e6
    over = f"{runs * TRIALS:,} trials of {runs} runs"
    probes: dict[str, tuple[str, Callable[[], dict[str, Any]]]] = {
        name: (a, partial(_probe, what, folder, runs * TRIALS))
        for name, what, a in (
            ("load.records", "records", f"`tuneoff.load(DIR).trials` without an export: {over}"),
            ("load.records.some", "records without energy", f"the same without what samples and prices say: {over}"),
            ("export.parquet", "export", f"`tuneoff export DIR --format parquet`, all tables: {over}"),
        )
    }
    for name, (a, probe) in probes.items():
        try:
            found = [probe() for _ in range(1 if settings.is_quick else 3)]
        except MeasurementError as error:
            yield skipped(name, a, str(error))
            continue
        seconds = [one["seconds"] for one in found]
        peak: PairedEstimate = estimate([one["peak_bytes"] / 1e6 for one in found])
        yield SpeedRow(
            name=name,
            a=a,
            unit="s",
            result=estimate(seconds),
            figures={
                "per 1,000 trials ms": 1e6 * estimate(seconds).value / (runs * TRIALS),
                "peak MB": peak.value,
                "files MB": size_mb,
            },
            samples={"seconds": seconds},
        )


def _say(name: str, settings: Settings, number: int, side: str, probe: dict[str, Any]) -> None:
    settings.say(f"  {name} {number + 1} {side}: {probe['seconds']:.3f} s, {probe['peak_bytes'] / 1e6:.0f} MB")


def _probe(what: str, folder: Path, trials: int) -> dict[str, Any]:
    answer, _ = run_module("benchmarks.speed.loading_probe", [what, str(folder), str(trials)])
    return answer
