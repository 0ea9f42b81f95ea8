"""Training on real MNIST, one thread: the shipped workload against its bare matrix products, and against a naive loop."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from pathlib import Path

from benchmarks.speed.child import MeasurementError, run_module
from benchmarks.speed.row import SpeedRow, SpeedTarget, skipped
from benchmarks.speed.settings import Settings
from benchmarks.speed.statistics import estimate, ratios
from tuneoff.base.commands import install_command

DATA_VARIABLE = "TUNEOFF_DATA_DIR"
LARGE, SMALL = (512, 512), (128, 64)  # (width of both hidden layers, batch size)
LIMIT_TARGETS = {LARGE: SpeedTarget(">=", 0.80), SMALL: SpeedTarget(">=", 0.50)}
NAIVE_TARGET = SpeedTarget(">=", 4.0)
ROUNDS = {LARGE: 12, SMALL: 20}


def measure(settings: Settings) -> Iterator[SpeedRow]:
    """Yield a row against the limit per size, and one against the naive loop; figures are images per second."""
    reason = why_not()
    for size in (LARGE, SMALL):
        yield from _rows(size, reason, settings)


def why_not() -> str | None:
    """Return why training on MNIST cannot be measured; None: it can."""
    folder = os.environ.get(DATA_VARIABLE)
    if not folder:
        return f"real MNIST is needed; set {DATA_VARIABLE} to the folder of its four files"
    if not Path(folder).is_dir():
        return f"{DATA_VARIABLE}={folder} must be a folder"
    for package in ("torch", "torchvision"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed; run: {install_command('tuneoff[mnist]')}"
    return None


def _rows(size: tuple[int, int], reason: str | None, settings: Settings) -> Iterator[SpeedRow]:
    width, batch = size
    shape = f"784-{width}-{width}-10, batch {batch}, one thread"
    a = f"mnist_mlp as it trains in a trial, images/s of an epoch of 55 000, {shape}"
    limit = "its 3 forward and 5 backward matrix products alone, outputs preallocated, in their fastest memory layout"
    naive = "per-sample Dataset of PIL images with transforms, DataLoader, loss.item() per step, torch.optim.Adam (6 400 images)"
    name = f"training.{width}x2_batch{batch}"
    speeds: dict[str, list[float]] = {}
    if reason is None:
        settings.say(f"  {shape}: {settings.repeats(ROUNDS[size])} rounds")
        order = {"width": width, "batch": batch, "rounds": settings.repeats(ROUNDS[size]), "naive": size == SMALL}
        try:
            speeds, _ = run_module("benchmarks.speed.training_probe", [json.dumps(order)])
        except MeasurementError as error:
            reason = str(error)
    others = [("limit", limit, LIMIT_TARGETS[size])]
    if size == SMALL:
        others.append(("naive", naive, NAIVE_TARGET))
    for other, b, target in others:
        if reason is not None:
            yield skipped(f"{name}.{other}", a, reason, b, target)
            continue
        figures = {"A images/s": estimate(speeds["shipped"]).value, "B images/s": estimate(speeds[other]).value}
        if other == "limit":
            linear = estimate(ratios(speeds["shipped"], speeds["linear"])).value
            figures["A / B with the products laid out as torch.nn.Linear has them"] = linear
        yield SpeedRow(
            name=f"{name}.{other}",
            a=a,
            b=b,
            result=estimate(ratios(speeds["shipped"], speeds[other])),
            target=target,
            control=estimate(ratios(speeds["limit_again"], speeds["limit"])) if other == "limit" else None,
            figures=figures,
            samples={f"{side}_images_per_second": values for side, values in speeds.items()},
        )
