"""Anytime performance: what each run's best trial was worth after so many trials, seconds, kWh and USD.

A curve is a right-continuous step function: from a step on its value holds. Draw it with steps, never interpolate it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tuneoff.judge.groups import Group, grouped
from tuneoff.judge.results import Results
from tuneoff.measure.incumbent import incumbents
from tuneoff.measure.spans import boundaries, partition
from tuneoff.record.run_record import RunRecord

Clock = Literal["trials", "seconds", "kwh", "usd"]
KWH = 3.6e6  # joules
NO_ENERGY = "the run has no energy of its parts"
NO_COST = "the run has no cost of its parts"
NOT_DONE = "it is not done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From here on the incumbent is worth `value`.

    `seconds` are since the first submission, `job_seconds` since the start of deploy; energy and cost are the job's from the
    start of deploy. None: the run has no such clock.
    """

    trials: int
    seconds: float
    job_seconds: float
    kwh: float | None
    usd: float | None
    value: float

    def at(self, clock: Clock) -> float | None:
        """Return where on a clock the step is."""
        return {"trials": float(self.trials), "seconds": self.seconds, "kwh": self.kwh, "usd": self.usd}[clock]


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """The incumbent of one run on all clocks. `ends`: where each clock stood as its last trial ended; the curve goes on to there.

    Energy and cost within a part of the job are shared out evenly in time, so both are estimated. `reasons`: why a clock is
    missing, or why there are no steps.
    """

    group: Group
    record: RunRecord
    steps: tuple[Step, ...]
    ends: Mapping[Clock, float]
    reasons: Mapping[str, str]


def curves(results: Results) -> list[Curve]:
    """Return the curve of every run that ended, by scope, adapter and seed; of a run that failed as far as it came."""
    run_curves = []
    runs = [(run, of.spec.experiment.objective, of) for of in grouped(results) if of.same_as is None for run in of.runs]
    for run, objective, group in runs:
        record = run.record
        if record is None or not run.has_ended:
            continue
        energy, cost = _Amount(record, "energy", 1 / KWH), _Amount(record, "cost", 1.0)
        steps = tuple(
            Step(
                trials=incumbent.trials,
                seconds=incumbent.seconds,
                job_seconds=incumbent.at_ns / 1e9,
                kwh=energy.at(incumbent.at_ns),
                usd=cost.at(incumbent.at_ns),
                value=incumbent.value,
            )
            for incumbent in incumbents(record, objective)
        )
        ends = _ends(record, energy, cost)
        run_curves.append(Curve(group=group, record=record, steps=steps, ends=ends, reasons=_reasons(record, steps, ends)))
    return run_curves


class _Amount:
    """An amount over the job's time, from what each part of it used: within a part it grows evenly."""

    def __init__(self, record: RunRecord, family: str, factor: float) -> None:
        self._points: list[tuple[int, float]] = []  # (ns since the run's start, used by then)
        used = 0.0
        for part, span in partition(record).items():
            metric = record.metrics.get(f"{family}.step.{part}")
            if span is None:
                continue
            if metric is None or metric.value is None:
                break
            start, end = span
            self._points.append((start, used))
            used += metric.value * factor
            self._points.append((end, used))

    def at(self, moment: int) -> float | None:
        """Return what was used by a moment; None beyond what is known."""
        for (start, before), (end, after) in pairwise(self._points):
            if start <= moment <= end:
                return after if end == start else before + (after - before) * (moment - start) / (end - start)
        return None


def _ends(record: RunRecord, energy: _Amount, cost: _Amount) -> dict[Clock, float]:
    marks = boundaries(record)
    ends: dict[Clock, float] = {"trials": float(sum(trial.used_ticket for trial in record.trials))}
    last, first = marks.last_ended_ns, marks.first_submitted_ns
    if last is None:
        return ends
    ends["seconds"] = (last - (first or 0)) / 1e9
    used: tuple[tuple[Clock, float | None], ...] = (("kwh", energy.at(last)), ("usd", cost.at(last)))
    return ends | {clock: amount for clock, amount in used if amount is not None}


def _reasons(record: RunRecord, steps: Sequence[Step], ends: Mapping[Clock, float]) -> dict[str, str]:
    reasons: dict[str, str] = {}
    if not steps:
        reasons["steps"] = "no trial completed with a finite value"
    if record.status != "done":
        reasons["status"] = record.reason or NOT_DONE
    for clock, reason in (("seconds", "no trial ended"), ("kwh", NO_ENERGY), ("usd", NO_COST)):
        if clock not in ends:
            reasons[clock] = reason
    return reasons
