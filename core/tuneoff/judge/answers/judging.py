"""The verdict on a pair of groups, and what it is under other reasonable choices; which pairs of a scope are compared.

Two groups are compared by seed. Modelled energy is subtracted under other weights too: with E = alpha (CPU seconds + r core
seconds), alpha cancels in a ratio and r does not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from tuneoff.base.format import counted
from tuneoff.judge.answers.answer import (
    WITHOUT_DISTURBED,
    WITHOUT_FAILURES,
    Outcome,
    PairedDifference,
    Question,
    Sensitivity,
    Verdict,
)
from tuneoff.judge.groups import Group, log_billing_step
from tuneoff.judge.runs import FEWEST_UNDISTURBED, Run, Scope, Value, disturbance, is_disturbed, value
from tuneoff.judge.stats.location import Interval, median
from tuneoff.judge.stats.paired import Estimator, Judgement, judge, judge_without_each
from tuneoff.judge.stats.power import seeds_needed
from tuneoff.judge.stats.signed_rank import least_n
from tuneoff.measure.attribution.gpu import trained_on_gpu
from tuneoff.measure.power.cpu_table import RATIO_LOW, WeightRange, weight_range
from tuneoff.measure.spans import started_attempts
from tuneoff.measure.use import busy_cpu
from tuneoff.record.metric_value import Kind
from tuneoff.record.run_record import RunRecord

FEWEST_SEEDS = 10  # paired; with fewer the intervals are shown, and nothing is claimed
FEWEST_FOR_INTERVAL = 2
FEWEST_FOR_SPREAD = 5
DECIDED = (Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)
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


def verdict(one: Group, other: Group, question: Question, alpha: float, *, is_noise: bool = False) -> Verdict:
    """Return what is claimed of `one` against `other`; `alpha`: the error that the verdict may have."""
    return _Case(one, other, question, alpha, is_noise).verdict()


class _Case:
    def __init__(self, one: Group, other: Group, question: Question, alpha: float, is_noise: bool) -> None:
        self.one, self.other, self.question, self.alpha, self.is_noise = one, other, question, alpha, is_noise
        self.scope: Scope = one.scope
        self.pair = pair(one, other, question)

    def verdict(self) -> Verdict:
        values = self.pair.values
        bare = Verdict(
            question=self.question,
            scope=self.scope,
            one=self.one.label,
            other=self.other.label,
            outcome=Outcome.NOT_JUDGED,
            reason="",
            interval=None,
            differences=self.pair.differences,
            failures=self.pair.failures,
            is_noise=self.is_noise,
            is_estimated=any(self._kind(cell, seed) == "estimated" for cell in (self.one, self.other) for seed in self._used),
            disturbance=disturbance(cell.by_seed[seed] for cell in (self.one, self.other) for seed in self._used),
        )
        few = self._too_few()
        if few is not None:
            return replace(bare, reason=few, interval=self._plain(self._compared))
        blocked = self.pair.waiting or self.pair.excluded
        if blocked is not None:
            shown = self._shown(values, self.alpha) if self.pair.excluded is None else None
            return replace(bare, outcome=Outcome.UNDECIDED, reason=blocked, interval=shown)
        if not self._compared:
            return replace(bare, outcome=Outcome.UNDECIDED, reason=f"both failed in {counted(len(values), 'seed')}")
        judgement = self._judge(values)
        outcome, why = self._guarded(self._outcome(judgement), self.pair.usable)
        sensitivities = tuple(self._sensitivities(outcome))
        weights = weights_of(self.one, self.other) if is_modelled(self.one, self.other, self.question.metric) else None
        if weights is not None:
            outcome, why = self._over_weights(outcome, why, sensitivities, weights)
        return replace(
            bare,
            outcome=outcome,
            reason=why or self._reason(outcome, judgement.interval),
            interval=judgement.interval,
            sensitivities=sensitivities,
            is_robust=bool(sensitivities) and all(one.outcome is outcome for one in sensitivities),
            weights=weights,
            seeds_to_decide=None if why or outcome in DECIDED else self._seeds_to_decide(values),
        )

    @property
    def _compared(self) -> list[float]:
        """The differences of the seeds in which not both failed: two failures have none."""
        return [row.difference for row in self.pair.usable if row.difference is not None and row.reason != BOTH_FAILED]

    @property
    def _used(self) -> list[int]:
        return [row.seed for row in self.pair.usable]

    def _kind(self, cell: Group, seed: int) -> Kind | None:
        return value(cell.by_seed[seed], self.question.metric).kind

    @property
    def _step(self) -> float:
        if self.question.metric == "quality.test":
            return max(self.one.grid_step, self.other.grid_step)
        return log_billing_step((self.one, self.other), self.question.metric)

    def _too_few(self) -> str | None:
        """Say why there are too few seeds to claim anything, whatever they hold."""
        planned, used = len(self.pair.differences), len(self.pair.values)
        if planned < FEWEST_SEEDS:
            return f"{counted(planned, 'seed')} planned for both, and a verdict needs {FEWEST_SEEDS}"
        if self.pair.waiting is not None or used >= FEWEST_SEEDS or self.pair.excluded is not None:
            return None
        reasons = [one.reason for one in self.pair.differences if one.difference is None and one.reason]
        most = f": {max(set(reasons), key=reasons.count)}" if reasons else ""
        return f"{used} of {counted(self.pair.ended, 'seed')} can be compared, and a verdict needs {FEWEST_SEEDS}{most}"

    def _judge(self, values: Sequence[float], estimator: Estimator = "hodges-lehmann", alpha: float | None = None) -> Judgement:
        return judge(
            values,
            margin=self.question.margin,
            alpha=self.alpha if alpha is None else alpha,
            grid_step=self._step,
            rounding_scale=self.pair.scale,
            estimator=estimator,
        )

    def _shown(self, values: Sequence[float], alpha: float) -> Interval | None:
        return self._judge(values, alpha=alpha).interval if len(values) >= FEWEST_FOR_INTERVAL else None

    def _plain(self, values: Sequence[float]) -> Interval | None:
        """Return the median of the differences with an interval that claims nothing: too few seeds for the verdict's own."""
        if len(values) < FEWEST_FOR_INTERVAL:
            return None
        return median(values, self.one.confidence, grid_step=self._step)

    def _outcome(self, judgement: Judgement) -> Outcome:
        if judgement.relation not in ("below", "above"):
            return Outcome(judgement.relation)
        is_better = (judgement.relation == "below") == (self.question.better == "min")
        return Outcome.BETTER if is_better else Outcome.WORSE

    def _guarded(self, outcome: Outcome, rows: Sequence[PairedDifference], fewest: int = FEWEST_SEEDS) -> tuple[Outcome, str]:
        """Take back an equivalence that rests on seeds in which both failed: these are no difference, and show nothing."""
        ties = sum(row.reason == BOTH_FAILED for row in rows)
        if outcome not in (Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT) or not ties:
            return outcome, ""
        rest = [row.difference for row in rows if row.difference is not None and row.reason != BOTH_FAILED]
        if len(rest) >= fewest and self._outcome(self._judge(rest)) is outcome:
            return outcome, ""
        return Outcome.UNDECIDED, f"both failed in {counted(ties, 'seed')}, and the others do not show that they are equivalent"

    def _sensitivities(self, outcome: Outcome) -> list[Sensitivity]:
        rows = self.pair.usable
        successes = [row for row in rows if row.reason is None]
        found = [self._sensitivity(WITHOUT_FAILURES, successes)] if len(successes) < len(rows) else []
        found += [self._sensitivity("median", rows, "median"), self._without_one(rows, outcome)]
        undisturbed = [row for row in rows if not self._is_disturbed(row.seed)]
        found += [self._without_disturbed(undisturbed)] if len(undisturbed) < len(rows) else []
        if is_modelled(self.one, self.other, self.question.metric):
            weights = weights_of(self.one, self.other)
            found += [self._weighted(choice, ratio) for choice, ratio in zip(ENDS, (weights.low, weights.high), strict=True)]
        return found

    def _sensitivity(self, choice: str, rows: Sequence[PairedDifference], estimator: Estimator = "hodges-lehmann") -> Sensitivity:
        values = [row.difference for row in rows if row.difference is not None]
        if len(values) < FEWEST_SEEDS:
            return Sensitivity(choice=choice, outcome=Outcome.NOT_JUDGED, interval=self._plain(values))
        judgement = self._judge(values, estimator)
        return Sensitivity(choice=choice, outcome=self._guarded(self._outcome(judgement), rows)[0], interval=judgement.interval)

    def _without_one(self, rows: Sequence[PairedDifference], outcome: Outcome) -> Sensitivity:
        """Leave out each seed in turn; one line names those without which the verdict would be another.

        Where the seeds that are left could show nothing at all at this error, the least one that they allow is taken: else no
        verdict on the fewest seeds would be robust.
        """
        alpha = max(self.alpha, 2.0 ** (2 - len(rows)))
        values = [row.difference for row in rows if row.difference is not None]
        judgements = judge_without_each(
            values, margin=self.question.margin, alpha=alpha, grid_step=self._step, rounding_scale=self.pair.scale
        )
        tried = {}
        for place, (row, judgement) in enumerate(zip(rows, judgements, strict=True)):
            rest = [*rows[:place], *rows[place + 1 :]]
            found = self._guarded(self._outcome(judgement), rest, fewest=FEWEST_SEEDS - 1)[0]
            tried[row.seed] = Sensitivity(choice="without any one seed", outcome=found, interval=judgement.interval)
        changing = {seed: one for seed, one in tried.items() if one.outcome is not outcome}
        if changing:
            first = next(iter(changing.values()))
            return replace(first, choice=f"without seed {' or '.join(map(str, changing))}")
        return max(tried.values(), key=_width)

    def _is_disturbed(self, seed: int) -> bool:
        """Whether a run of the pair was disturbed, or may have been."""
        return any(is_disturbed(cell.by_seed[seed]) is not False for cell in (self.one, self.other))

    def _without_disturbed(self, rows: Sequence[PairedDifference]) -> Sensitivity:
        """Judge the pairs that nobody disturbed, at the least error that so many allow where that is greater than `alpha`."""
        values = [row.difference for row in rows if row.difference is not None]
        if len(values) < FEWEST_UNDISTURBED:
            return Sensitivity(choice=WITHOUT_DISTURBED, outcome=Outcome.NOT_JUDGED, interval=self._plain(values))
        judgement = self._judge(values, alpha=max(self.alpha, 2.0 ** (1 - len(values))))
        outcome = self._guarded(self._outcome(judgement), rows, fewest=FEWEST_UNDISTURBED)[0]
        return Sensitivity(choice=WITHOUT_DISTURBED, outcome=outcome, interval=judgement.interval)

    def _weighted(self, choice: str, ratio: float) -> Sensitivity:
        found = pair(self.one, self.other, self.question, weighted(ratio))
        if found.excluded is not None or len(found.values) < len(self.pair.values):
            return Sensitivity(choice=choice, outcome=Outcome.NOT_JUDGED, interval=None)
        return self._sensitivity(choice, found.usable)

    def _over_weights(
        self, outcome: Outcome, why: str, found: Sequence[Sensitivity], weights: WeightRange
    ) -> tuple[Outcome, str]:
        """Take back a verdict on modelled energy that does not hold over the plausible range of the model's weights."""
        ends = [one for one in found if one.choice in ENDS]
        if outcome is Outcome.UNDECIDED or all(one.outcome is outcome for one in ends):
            return outcome, why
        if any(one.outcome is Outcome.NOT_JUDGED for one in ends):
            return Outcome.UNDECIDED, f"modelled: {UNKNOWN}"
        ratios = dict(zip(ENDS, (weights.low, weights.high), strict=True))
        at = "; ".join(f"{one.outcome.value} at {ratios[one.choice]:.3g}" for one in ends)
        return (
            Outcome.UNDECIDED,
            f"modelled: it does not hold for every weight (W per core over J per CPU second) of {weights.servers}: {at}",
        )

    def _reason(self, outcome: Outcome, interval: Interval) -> str:
        margin = self.question.margin_text.partition(" (")[0]  # where it is from is said with the question
        if outcome is Outcome.EQUIVALENT:
            return f"the interval is within the margin of {margin}"
        if outcome is Outcome.EQUIVALENT_THOUGH_DIFFERENT:
            return f"the interval leaves out 0, but is within the margin of {margin}"
        if outcome in (Outcome.BETTER, Outcome.WORSE):
            beyond = f" and is not within the margin of {margin}" if self.question.margin is not None else ""
            return f"the interval leaves out 0{beyond}"
        if interval.n < (needed := least_n(self.alpha)):
            error = f"the error of {self.alpha:.2g} that the family leaves for one verdict"
            return f"{counted(interval.n, 'seed')} can show nothing at {error}; it takes {needed}"
        if self.question.margin is None:
            return f"the interval holds 0, and there is no margin to be equivalent by: {self.question.margin_text}"
        return f"the interval holds 0 and reaches beyond the margin of {margin}"

    def _seeds_to_decide(self, values: Sequence[float]) -> int | None:
        """Return about how many seeds of a new experiment would decide by this spread, whatever the difference is.

        It is at least half the margin away from 0 or from the margin: with so many seeds that distance is found.
        """
        finite = [value for value in values if math.isfinite(value)]
        if self.question.margin is None or len(finite) < FEWEST_FOR_SPREAD:
            return None
        spread = statistics.stdev(finite)
        if spread <= 1e-12 * max(1.0, self.pair.scale):
            return None
        return seeds_needed(self.question.margin / 2 / spread, self.alpha)


def _width(one: Sensitivity) -> float:
    return one.interval.high - one.interval.low if one.interval is not None else math.inf


def pairs(cells: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Return the pairs of a scope that are compared: of first entries, on real platforms, that run."""
    firsts = [cell for cell in cells if cell.is_compared and cell.spec.replicate == 0]
    return [(one, other) for one, other in combinations(firsts, 2) if not is_elsewhere(one, other)]


def is_elsewhere(one: Group, other: Group) -> bool:
    """Whether the runs of both are those of one other scope, where they are compared."""
    return bool(one.twins) and one.same_as == other.same_as


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedDifferences:
    """Paired differences of two groups on a question's scale, one per planned seed."""

    differences: tuple[PairedDifference, ...]
    ended: int  # seeds that have ended in both
    failures: tuple[int, int]  # of these
    scale: float  # the greatest size of what was subtracted
    excluded: str | None = None  # why no verdict can be made, whatever the values are

    @property
    def waiting(self) -> str | None:
        """Why no verdict may be made yet."""
        planned = len(self.differences)
        return f"{self.ended} of {counted(planned, 'planned seed')} have ended in both" if self.ended < planned else None

    @property
    def usable(self) -> tuple[PairedDifference, ...]:
        """The differences that a verdict rests on."""
        return tuple(one for one in self.differences if one.difference is not None)

    @property
    def values(self) -> list[float]:
        return [one.difference for one in self.usable if one.difference is not None]


def pair(one: Group, other: Group, question: Question, measure: Measure = value) -> SeedDifferences:
    """Return the paired differences of two groups; `measure` gives a run's value of the question's metric."""
    theirs = other.by_seed
    runs = [(run, theirs[seed]) for seed, run in one.by_seed.items() if seed in theirs]
    ended = [both for both in runs if both[0].has_ended and both[1].has_ended]
    rows, sizes, kinds = zip(*(_difference(*both, question, measure) for both in runs), strict=True) if runs else ((), (), ())
    without = sum(row.reason == NO_RATIO for row in rows)
    return SeedDifferences(
        differences=rows,
        ended=len(ended),
        failures=(sum(run.has_failed for run, _ in ended), sum(run.has_failed for _, run in ended)),
        scale=1.0 if question.scale == "ratio" else max(sizes, default=0.0),  # ln(a / b) is rounded as numbers around 1
        excluded=next(filter(None, kinds), f"in {counted(without, 'seed')} {NO_RATIO}" if without else None),
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
