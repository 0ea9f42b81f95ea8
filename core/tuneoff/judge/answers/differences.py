"""Two cells by seed: what is subtracted, what a failed run means, which seeds a verdict rests on.

Modelled energy is subtracted under other weights too: with E = alpha (CPU seconds + r core seconds), alpha cancels in a ratio and
r does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuneoff.base.format import counted
from tuneoff.judge.answers.answer import PairedDifference, Question
from tuneoff.judge.groups import Group
from tuneoff.judge.run_values import Value, value
from tuneoff.judge.runs import Run
from tuneoff.measure.attribution.gpu import trained_on_gpu
from tuneoff.measure.power.cpu_table import RATIO_LOW, WeightRange, weight_range
from tuneoff.measure.spans import started_attempts
from tuneoff.measure.use import busy_cpu
from tuneoff.record.run_record import RunRecord

BOTH_FAILED = "both failed: counted as no difference"
KINDS = "the kinds differ ({} and {}), and such values are never compared"
NO_RATIO = "a value that is not above 0 has no ratio"
Measure = Callable[[Run, str], Value]
ENDS = ("energy weights low", "energy weights high")  # choices of sensitivities
UNKNOWN = "the model's two weights cannot be applied to it, so no order is claimed"

_PARTS = {  # metric: what of the job it is of, and the metric by which the sum is divided
    "energy.job": ("", None),
    "energy.per_completed_trial": ("", "trials.completed"),
    "energy.job_without_test": ("_without_test", None),
    "energy.per_completed_trial_without_test": ("_without_test", "trials.completed"),
    "energy.per_trained_epoch": ("", "epochs.trained"),
    "carbon.job": ("", None),
    "carbon.job_without_test": ("_without_test", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeds:
    """The seeds that a verdict may use, and why it may not be made yet."""

    planned: tuple[int, ...]
    used: tuple[int, ...]
    waiting: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedDifferences:
    """Paired differences of two cells on a question's scale, one per planned seed."""

    seeds: Seeds
    differences: tuple[PairedDifference, ...]
    failures: tuple[int, int]  # of the used seeds
    scale: float  # the greatest size of what was subtracted
    excluded: str | None = None  # why no verdict can be made, whatever the values are

    @property
    def usable(self) -> tuple[PairedDifference, ...]:
        """The differences that a verdict rests on."""
        used = set(self.seeds.used)
        return tuple(one for one in self.differences if one.seed in used and one.difference is not None)

    @property
    def values(self) -> list[float]:
        return [one.difference for one in self.usable if one.difference is not None]


def seeds(one: Group, other: Group) -> Seeds:
    """Return the seeds to judge by: all planned ones once they have ended."""
    ours, theirs = one.by_seed, other.by_seed
    planned = tuple(seed for seed in ours if seed in theirs)
    ended = tuple(seed for seed in planned if ours[seed].has_ended and theirs[seed].has_ended)
    waiting = None
    if len(ended) < len(planned):
        waiting = f"{len(ended)} of {counted(len(planned), 'planned seed')} have ended in both"
    return Seeds(planned=planned, used=ended, waiting=waiting)


def pair(one: Group, other: Group, question: Question, measure: Measure = value) -> SeedDifferences:
    """Return the paired differences of two cells; `measure` gives a run's value of the question's metric."""
    chosen = seeds(one, other)
    used = set(chosen.used)
    ours, theirs = one.by_seed, other.by_seed
    rows, sizes, mixed = [], [0.0], None
    for seed in chosen.planned:
        row, size, kinds = _difference(ours[seed], theirs[seed], question, measure)
        rows.append(row)
        if seed in used:
            sizes.append(size)
            mixed = mixed or kinds
    failures = tuple(sum(runs[seed].has_failed for seed in used) for runs in (ours, theirs))
    return SeedDifferences(
        seeds=chosen,
        differences=tuple(rows),
        failures=(failures[0], failures[1]),
        scale=1.0 if question.scale == "ratio" else max(sizes),  # ln(a / b): its rounding is that of numbers around 1
        excluded=mixed or _without_ratio(rows, used),
    )


def _difference(one: Run, other: Run, question: Question, measure: Measure) -> tuple[PairedDifference, float, str | None]:
    """Return the difference of a seed, the size of what was subtracted, and the kinds where they forbid it."""
    seed = one.seed
    ours, theirs = measure(one, question.metric), measure(other, question.metric)

    def row(difference: float | None, reason: str | None) -> PairedDifference:
        return PairedDifference(seed=seed, one=ours.value, other=theirs.value, difference=difference, reason=reason)

    if not (one.has_ended and other.has_ended):
        waiting = " and ".join(f"{name} is {run.status}" for name, run in (("one", one), ("other", other)) if not run.has_ended)
        return row(None, waiting), 0.0, None
    if one.has_failed and other.has_failed:
        return row(0.0, BOTH_FAILED), 0.0, None
    if one.has_failed or other.has_failed:
        present = theirs if one.has_failed else ours
        if present.value is None:
            return row(None, present.reason), 0.0, None
        losing = 1.0 if question.better == "min" else -1.0
        sign = losing if one.has_failed else -losing
        return row(sign * math.inf, f"{'one' if one.has_failed else 'other'} failed"), 0.0, None
    if ours.value is None or theirs.value is None:
        return row(None, ours.reason if ours.value is None else theirs.reason), 0.0, None
    if ours.kind != theirs.kind:
        kinds = KINDS.format(*sorted((str(ours.kind), str(theirs.kind))))
        return row(None, kinds), 0.0, kinds
    if question.scale == "difference":
        return row(ours.value - theirs.value, None), max(abs(ours.value), abs(theirs.value)), None
    if ours.value == theirs.value:
        return row(0.0, None), 1.0, None
    if min(ours.value, theirs.value) <= 0:
        return row(None, NO_RATIO), 0.0, None
    return row(math.log(ours.value / theirs.value), None), 1.0, None


def _without_ratio(rows: Sequence[PairedDifference], used: set[int]) -> str | None:
    without = sum(row.seed in used and row.reason == NO_RATIO for row in rows)
    return f"in {counted(without, 'seed')} {NO_RATIO}" if without else None


def rests_on_energy(metric: str) -> bool:
    """Whether a metric is an amount of energy, or of carbon, which follows it."""
    return metric.startswith(("energy.", "carbon.")) or metric.endswith((".energy", ".carbon"))


def is_modelled(one: Group, other: Group, metric: str) -> bool:
    """Whether the metric is modelled with weights. A metered energy with gaps is estimated too, but by none."""
    if not rests_on_energy(metric):
        return False
    return any(_is_modelled(run, metric) for cell in (one, other) for run in cell.runs)


def weights_of(*cells: Group) -> WeightRange:
    """Return the plausible range of the ratio of the weights for the runs of all these cells."""
    return weight_range(run.record for cell in cells for run in cell.runs if run.record is not None and run.is_done)


def weighted(ratio: float) -> Callable[[Run, str], Value]:
    """Return the measure of a metric at a ratio of the weights, in CPU seconds: the other weight cancels."""

    def measure(run: Run, metric: str) -> Value:
        plain = value(run, metric)
        if plain.value is None or run.record is None:
            return plain
        cpu, cores, count = _model_uses(run, run.record, metric)
        if trained_on_gpu(run.record) or cpu is None or cores is None or not count:
            return Value(seed=run.seed, value=None, reason=UNKNOWN)
        return Value(seed=run.seed, value=(cpu + ratio * cores) / count, kind=plain.kind)

    return measure


def _model_uses(run: Run, record: RunRecord, metric: str) -> tuple[float | None, float | None, float | None]:
    """Return the CPU seconds and reserved core seconds that a modelled metric rests on, and by what their sum is divided."""
    if metric == "energy.trial":
        used = [busy_cpu(attempt) for _, attempt in started_attempts(record)]
        known = [one for one in used if one is not None]
        busy_seconds = sum(busy for _, busy in known) / 1e9
        cpu = sum(cpu for cpu, _ in known) / 1e9 if len(known) == len(used) else None
        return cpu, run.spec.experiment.workers.cpus * busy_seconds, _metric(run, "trials.used")
    if metric not in _PARTS:
        return None, None, None
    part, divisor = _PARTS[metric]
    cores = _metric(run, "energy.reserved_core_seconds")
    if part and cores is not None:  # they are reserved all the time
        whole, length = _metric(run, "time.jct"), _metric(run, f"time.jct{part}")
        cores = cores * length / whole if whole and length is not None else None
    return _metric(run, f"energy.cpu_seconds{part}"), cores, 1.0 if divisor is None else _metric(run, divisor)


def _metric(run: Run, name: str) -> float | None:
    found = run.record.metrics.get(name) if run.record is not None else None
    return found.value if found is not None else None


def _is_modelled(run: Run, metric: str) -> bool:
    return value(run, metric).kind == "estimated" and _metric(run, RATIO_LOW) is not None
