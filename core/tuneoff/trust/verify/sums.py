"""Do parts sum to their wholes: the partition to JCT, slot time to its window, energy to the node's energy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tuneoff.measure.attribution.account import JOB_PARTS, OTHER_PARTS, EnergyAccount, EnergyPiece
from tuneoff.record.metric_value import MetricValue

PARTITION = ("deploy", "setup", "trial", "result_collection", "test", "metric_collection", "undeploy", "unassigned")
SLOT_PARTS = ("busy", "overhead", "idle")
RELATIVE = 1e-6  # of the whole: sums of many decimal numbers
ABSOLUTE = 1e-6  # in the unit of the whole

Metrics = Mapping[str, MetricValue]


class WrongSum(NamedTuple):
    """A metric that is not the sum of its parts."""

    metric: str
    text: str


def wrong_sums(metrics: Metrics, account: EnergyAccount) -> Iterator[WrongSum]:
    """Yield the metrics of a run that are not the sum of their parts; where a part is null nothing can be told."""
    yield from _whole(metrics, "time.jct", [f"time.{name}" for name in PARTITION])
    yield from _whole(metrics, "slots.slot_time", [f"slots.{name}" for name in SLOT_PARTS])
    for name in SLOT_PARTS:
        slots = [metric for metric in metrics if metric.startswith(f"slots.{name}[")]
        if slots:
            yield from _whole(metrics, f"slots.{name}", slots)
    yield from _energy(metrics, account)


def _whole(metrics: Metrics, whole: str, parts: Iterable[str]) -> Iterator[WrongSum]:
    total = _value(metrics, whole)
    values = [_value(metrics, part) for part in parts]
    known = [value for value in values if value is not None]
    if total is not None and len(known) == len(values):
        yield from _unequal(whole, total, math.fsum(known), "its parts sum to")


def _energy(metrics: Metrics, account: EnergyAccount) -> Iterator[WrongSum]:
    """Sum the pieces of the account anew: every part, the job, and the node's energy with its residual."""
    if account.reason is not None:
        return
    sums = {name: _joules(account.parts[name]) for name in (*JOB_PARTS, *OTHER_PARTS) if name in account.parts}
    if "trials" not in account.reasons:
        sums["trials"] = math.fsum(piece.joules for pieces in account.attempts.values() for piece in pieces)
    for name, total in sums.items():
        yield from _stated(metrics, f"energy.{name}", total)
    if account.job_reason is None:
        yield from _stated(metrics, "energy.job", math.fsum(sums.get(name, 0.0) for name in ("trials", *JOB_PARTS)))
    if account.node is None:
        return
    node = _joules(account.node)
    yield from _stated(metrics, "energy.node", node)
    residual = _value(metrics, "energy.residual")
    if residual is not None:
        yield from _unequal("energy.node", node, math.fsum(sums.values()) + residual, "its parts and the residual sum to")


def _stated(metrics: Metrics, name: str, total: float) -> Iterator[WrongSum]:
    value = _value(metrics, name)
    if value is not None:
        yield from _unequal(name, value, total, "its pieces sum to")


def _unequal(name: str, whole: float, total: float, how: str) -> Iterator[WrongSum]:
    if not math.isclose(whole, total, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
        yield WrongSum(name, f"it is {whole:.9g}, but {how} {total:.9g}")


def _joules(pieces: Iterable[EnergyPiece]) -> float:
    return math.fsum(piece.joules for piece in pieces)


def _value(metrics: Metrics, name: str) -> float | None:
    metric = metrics.get(name)
    return metric.value if metric is not None else None
