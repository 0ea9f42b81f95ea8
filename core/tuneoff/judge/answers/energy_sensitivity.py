"""Modelled energy under other weights: with E = alpha (CPU seconds + r core seconds), alpha cancels in a ratio and r does not."""

from __future__ import annotations

from collections.abc import Callable

from tuneoff.judge.answers.answer import Value
from tuneoff.judge.answers.run_values import value
from tuneoff.judge.runs import Group, Run
from tuneoff.measure.attribution.gpu import trained_on_gpu
from tuneoff.measure.energy_order import WeightRange, weight_range

ENDS = ("energy weights low", "energy weights high")  # choices of sensitivities
UNKNOWN = "the model's two weights cannot be applied to it, so no order is claimed"

_JOB = ("energy.cpu_seconds", "energy.reserved_core_seconds")
_TRIALS = ("energy.trial_cpu_seconds", "energy.trial_core_seconds")
_PARTS = {  # metric: CPU seconds and core seconds that it rests on, and the metric by which the sum is divided
    "energy.job": (_JOB, None),
    "energy.per_completed_trial": (_JOB, "trials.completed"),
    "energy.per_trained_epoch": (_JOB, "epochs.trained"),
    "energy.trials": (_TRIALS, None),
    "energy.trial": (_TRIALS, "trials.used"),
    "carbon.job": (_JOB, None),
    "carbon.per_completed_trial": (_JOB, "trials.completed"),
    "carbon.trials": (_TRIALS, None),
}


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
        parts, divisor = _PARTS.get(metric, (None, None))
        if parts is None or trained_on_gpu(run.record):
            return Value(seed=run.seed, value=None, reason=UNKNOWN)
        cpu, cores = (_metric(run, name) for name in parts)
        count = 1.0 if divisor is None else _metric(run, divisor)
        if cpu is None or cores is None or not count:
            return Value(seed=run.seed, value=None, reason=UNKNOWN)
        return Value(seed=run.seed, value=(cpu + ratio * cores) / count, kind=plain.kind)

    return measure


def _metric(run: Run, name: str) -> float | None:
    found = run.record.metrics.get(name) if run.record is not None else None
    return found.value if found is not None else None


def _is_modelled(run: Run, metric: str) -> bool:
    weight = _metric(run, "energy.joules_per_cpu_second")
    return value(run, metric).kind == "estimated" and weight is not None
