"""The verdict on a pair of groups, and what it is under other reasonable choices; which pairs of a scope are compared.

Two groups are compared by seed. Modelled energy is subtracted under other weights too: with E = alpha (CPU seconds + r core
seconds), alpha cancels in a ratio and r does not.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
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
from tuneoff.judge.results import FEWEST_UNDISTURBED, Run, disturbance, is_disturbed, value
from tuneoff.judge.stats.location import Interval, median
from tuneoff.judge.stats.paired import Estimator, Judgement, judge, judge_without_each
from tuneoff.judge.stats.power import seeds_needed
from tuneoff.judge.stats.signed_rank import least_n
from tuneoff.measure.attribution.gpu import trained_on_gpu
from tuneoff.measure.power.cpu_table import RATIO_LOW, WeightRange, weight_range
from tuneoff.measure.spans import started_attempts
from tuneoff.measure.use import busy_cpu
from tuneoff.record.metric_value import MetricValue, metric_value, missing

FEWEST_SEEDS = 10  # paired; with fewer the intervals are shown, and nothing is claimed
FEWEST_FOR_INTERVAL = 2
FEWEST_FOR_SPREAD = 5
DECIDED = (Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)
BOTH_FAILED = "both failed: counted as no difference"
KINDS_DIFFER = "the kinds differ"
KINDS = KINDS_DIFFER + " ({} and {}), and such values are never compared"
NO_RATIO = "a value that is not above 0 has no ratio"
Measure = Callable[[Run, str], MetricValue]
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


@dataclass
class PairComparison:
    """Two groups of a scope on one question; `alpha`: the error that the verdict may have.

    `bases`: groups, one for each, done in all of its seeds: what they differ by is taken off.
    """

    group: Group
    other: Group
    question: Question
    alpha: float
    is_noise: bool = False
    bases: Sequence[Group] = ()

    def __post_init__(self) -> None:
        self.pair = pair(self.group, self.other, self.question, self._measure(value))  # by the metric as it is
        self._all = (self.group, self.other, *self.bases)

    def verdict(self) -> Verdict:
        """Return what is claimed of the first group against the other."""
        values = self.pair.values
        used = [group.by_seed[row.seed] for group in self._all for row in self.pair.usable]
        bare = Verdict(
            question=self.question,
            scope=self.group.scope,
            one=self.group.label,
            other=self.other.label,
            outcome=Outcome.NOT_JUDGED,
            reason="",
            interval=None,
            differences=self.pair.differences,
            failures=self.pair.failures,
            is_noise=self.is_noise,
            is_estimated=any(value(run, self.question.metric).kind == "estimated" for run in used),
            disturbance=disturbance(used),
        )
        too_few = self._too_few()
        if too_few is not None:
            return replace(bare, reason=too_few, interval=self._plain(self._compared))
        blocked = self.pair.waiting or self.pair.excluded
        if blocked is not None:
            can_show = self.pair.excluded is None and len(values) >= FEWEST_FOR_INTERVAL
            interval = self._judge(values).interval if can_show else None
            return replace(bare, outcome=Outcome.UNDECIDED, reason=blocked, interval=interval)
        if not self._compared:
            return replace(bare, outcome=Outcome.UNDECIDED, reason=f"both failed in {counted(len(values), 'seed')}")
        judgement = self._judge(values)
        outcome, why = self._guarded(self._outcome(judgement), self.pair.usable)
        weights = weights_of(self.group, self.other) if is_modelled(self.group, self.other, self.question.metric) else None
        sensitivities = tuple(self._sensitivities(outcome, weights))
        ends = [sensitivity for sensitivity in sensitivities if sensitivity.choice in ENDS]
        if weights is not None and outcome is not Outcome.UNDECIDED and any(end.outcome is not outcome for end in ends):
            why = f"modelled: {UNKNOWN}"  # a verdict on modelled energy has to hold at all plausible weights of the model
            if all(end.outcome is not Outcome.NOT_JUDGED for end in ends):
                ratios = dict(zip(ENDS, (weights.low, weights.high), strict=True))
                at = "; ".join(f"{end.outcome.value} at {ratios[end.choice]:.3g}" for end in ends)
                every = f"every weight (W per core over J per CPU second) of {weights.servers}"
                why = f"modelled: it does not hold for {every}: {at}"
            outcome = Outcome.UNDECIDED
        # About how many seeds of a new experiment would decide by this spread? Whatever the difference is, it is at least half
        # the margin away from 0 or from the margin.
        needed, margin = None, self.question.margin
        finite = [value for value in values if math.isfinite(value)]
        if not why and outcome not in DECIDED and margin is not None and len(finite) >= FEWEST_FOR_SPREAD:
            spread = statistics.stdev(finite)
            needed = seeds_needed(margin / 2 / spread, self.alpha) if spread > 1e-12 * max(1.0, self.pair.scale) else None
        return replace(
            bare,
            outcome=outcome,
            reason=why or self._reason(outcome, judgement.interval),
            interval=judgement.interval,
            sensitivities=sensitivities,
            weights=weights,
            seeds_to_decide=needed,
        )

    @property
    def _compared(self) -> list[float]:
        """The differences of the seeds in which not both failed: two failures have none."""
        return _values(row for row in self.pair.usable if row.reason != BOTH_FAILED)

    def _measure(self, measure: Measure) -> Measure:
        """Return the measure by which the first group's values are what they would be with the second group's base."""
        if not self.bases:
            return measure
        firsts = set(map(id, self.group.runs))

        def rebased(run: Run, metric: str) -> MetricValue:
            seen = measure(run, metric)
            if id(run) not in firsts or seen.value is None:
                return seen
            new, old = (measure(base.by_seed[run.seed], metric).value for base in self.bases)
            is_ratio = self.question.scale == "ratio"
            if new is None or old is None or (is_ratio and min(new, old) <= 0):
                return missing(seen.unit, f"{self.bases[0].label} has no value")
            shifted = seen.value * (old / new) if is_ratio else seen.value + (old - new)
            return metric_value(shifted, seen.unit, kind=seen.kind)

        return rebased

    @property
    def _step(self) -> float:
        if self.question.metric == "quality.test":
            return max(self.group.grid_step, self.other.grid_step)
        return log_billing_step((self.group, self.other), self.question.metric)

    def _too_few(self) -> str | None:
        """Say why there are too few seeds to claim anything, whatever they hold."""
        planned, used = len(self.pair.differences), len(self.pair.values)
        if planned < FEWEST_SEEDS:
            return f"{counted(planned, 'seed')} planned; a verdict needs {FEWEST_SEEDS}"
        if self.pair.waiting is not None or used >= FEWEST_SEEDS or self.pair.excluded is not None:
            return None
        reasons = [row.reason for row in self.pair.differences if row.difference is None and row.reason]
        most = f": {max(set(reasons), key=reasons.count)}" if reasons else ""
        return f"{used} of {counted(self.pair.ended, 'seed')} can be compared{most}; a verdict needs {FEWEST_SEEDS}"

    def _judge(self, values: Sequence[float], estimator: Estimator = "hodges-lehmann", alpha: float | None = None) -> Judgement:
        return judge(
            values,
            margin=self.question.margin,
            alpha=self.alpha if alpha is None else alpha,
            grid_step=self._step,
            rounding_scale=self.pair.scale,
            estimator=estimator,
        )

    def _plain(self, values: Sequence[float]) -> Interval | None:
        """Return the median of the differences with an interval that claims nothing: too few seeds for the verdict's own."""
        if len(values) < FEWEST_FOR_INTERVAL:
            return None
        return median(values, self.group.confidence, grid_step=self._step)

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
        rest = _values(row for row in rows if row.reason != BOTH_FAILED)
        if len(rest) >= fewest and self._outcome(self._judge(rest)) is outcome:
            return outcome, ""
        return Outcome.UNDECIDED, f"both failed in {counted(ties, 'seed')}, and the other seeds do not show equivalence"

    def _sensitivities(self, outcome: Outcome, weights: WeightRange | None) -> list[Sensitivity]:
        rows = self.pair.usable
        successes = [row for row in rows if row.reason is None]
        sensitivities = [self._sensitivity(WITHOUT_FAILURES, successes)] if len(successes) < len(rows) else []
        sensitivities.append(self._sensitivity("median", rows, "median"))

        # Each seed is left out in turn; one line names those without which the verdict would be another. At the smallest error
        # that the remaining seeds allow, if they could show nothing at this one: else no verdict on the fewest would be robust.
        alpha = max(self.alpha, 2.0 ** (2 - len(rows)))
        judgements = judge_without_each(
            _values(rows), margin=self.question.margin, alpha=alpha, grid_step=self._step, rounding_scale=self.pair.scale
        )
        changing = {}
        for index, (row, judgement) in enumerate(zip(rows, judgements, strict=True)):
            rest = [*rows[:index], *rows[index + 1 :]]
            outcome_without = self._guarded(self._outcome(judgement), rest, fewest=FEWEST_SEEDS - 1)[0]
            if outcome_without is not outcome:
                changing[row.seed] = outcome_without, judgement.interval
        if changing:
            first, interval = next(iter(changing.values()))
            choice = f"without seed {' or '.join(map(str, changing))}"
        else:
            widest = max(judgements, key=lambda judgement: judgement.interval.high - judgement.interval.low)
            choice, first, interval = "without any one seed", outcome, widest.interval
        sensitivities.append(Sensitivity(choice=choice, outcome=first, interval=interval))

        undisturbed = [row for row in rows if all(is_disturbed(group.by_seed[row.seed]) is False for group in self._all)]
        if len(undisturbed) < len(rows):  # at the smallest error that so many pairs allow
            alpha = max(self.alpha, 2.0 ** (1 - len(undisturbed)))
            sensitivities.append(self._sensitivity(WITHOUT_DISTURBED, undisturbed, fewest=FEWEST_UNDISTURBED, alpha=alpha))
        if weights is not None:
            for choice, ratio in zip(ENDS, (weights.low, weights.high), strict=True):
                differences = pair(self.group, self.other, self.question, self._measure(weighted(ratio)))
                if differences.excluded is not None or len(differences.values) < len(self.pair.values):
                    sensitivities.append(Sensitivity(choice=choice, outcome=Outcome.NOT_JUDGED, interval=None))
                else:
                    sensitivities.append(self._sensitivity(choice, differences.usable))
        return sensitivities

    def _sensitivity(
        self,
        choice: str,
        rows: Sequence[PairedDifference],
        estimator: Estimator = "hodges-lehmann",
        *,
        fewest: int = FEWEST_SEEDS,
        alpha: float | None = None,
    ) -> Sensitivity:
        values = _values(rows)
        if len(values) < fewest:
            return Sensitivity(choice=choice, outcome=Outcome.NOT_JUDGED, interval=self._plain(values))
        judgement = self._judge(values, estimator, alpha)
        outcome, _ = self._guarded(self._outcome(judgement), rows, fewest)
        return Sensitivity(choice=choice, outcome=outcome, interval=judgement.interval)

    def _reason(self, outcome: Outcome, interval: Interval) -> str:
        margin = self.question.margin_text.partition(" (")[0]  # where it is from is said with the question
        if outcome is Outcome.EQUIVALENT:
            return f"the interval is within the margin of {margin}"
        if outcome is Outcome.EQUIVALENT_THOUGH_DIFFERENT:
            return f"the interval excludes 0, but is within the margin of {margin}"
        if outcome in (Outcome.BETTER, Outcome.WORSE):
            beyond = f" and is not within the margin of {margin}" if self.question.margin is not None else ""
            return f"the interval excludes 0{beyond}"
        if interval.n < (needed := least_n(self.alpha)):
            error = f"the error of {self.alpha:.2g} that the family leaves for one verdict"
            return f"{counted(interval.n, 'seed')} can show nothing at {error}; {needed} are needed"
        if self.question.margin is None:
            return f"the interval contains 0, and equivalence needs a margin: {self.question.margin_text}"
        return f"the interval contains 0 and exceeds the margin of {margin}"


def pairs(groups: Sequence[Group]) -> list[tuple[Group, Group]]:
    """Return the pairs of a scope that are compared: of first entries, on real platforms, that run."""
    firsts = [group for group in groups if group.is_compared and group.spec.replicate == 0]
    return [(group, other) for group, other in combinations(firsts, 2) if not is_elsewhere(group, other)]


def is_elsewhere(group: Group, other: Group) -> bool:
    """Whether the runs of both are those of one other scope, where they are compared."""
    return bool(group.twins) and group.same_as == other.same_as


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedDifferences:
    """Paired differences of two groups on a question's scale, one per planned seed."""

    differences: tuple[PairedDifference, ...]
    usable: tuple[PairedDifference, ...]  # those that a verdict rests on
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
    def values(self) -> list[float]:
        return _values(self.differences)


def _values(rows: Iterable[PairedDifference]) -> list[float]:
    return [row.difference for row in rows if row.difference is not None]


def pair(group: Group, other: Group, question: Question, measure: Measure = value) -> SeedDifferences:
    """Return the paired differences of two groups; `measure` gives a run's value of the question's metric."""
    other_runs = other.by_seed
    runs = [(run, other_runs[seed]) for seed, run in group.by_seed.items() if seed in other_runs]
    ended = [both for both in runs if both[0].has_ended and both[1].has_ended]
    rows = []
    for run, other_run in runs:
        values = measure(run, question.metric), measure(other_run, question.metric)
        difference, reason = _difference(run, other_run, *values, question)
        row = PairedDifference(seed=run.seed, one=values[0].value, other=values[1].value, difference=difference, reason=reason)
        rows.append(row)
    sizes = [abs(size) for row in rows if row.reason is None for size in (row.one, row.other) if size is not None]
    kinds = [row.reason for row in rows if row.reason is not None and row.reason.startswith(KINDS_DIFFER)]
    without = sum(row.reason == NO_RATIO for row in rows)
    return SeedDifferences(
        differences=tuple(rows),
        usable=tuple(row for row in rows if row.difference is not None),
        ended=len(ended),
        failures=(sum(run.has_failed for run, _ in ended), sum(run.has_failed for _, run in ended)),
        scale=1.0 if question.scale == "ratio" else max(sizes, default=0.0),  # ln(a / b) is rounded as numbers around 1
        excluded=next(iter(kinds), f"in {counted(without, 'seed')} {NO_RATIO}" if without else None),
    )


def _difference(
    first: Run, second: Run, first_value: MetricValue, second_value: MetricValue, question: Question
) -> tuple[float | None, str | None]:
    """Return the difference of a seed, or why it has none."""
    waiting = [f"{name} is {run.status}" for name, run in (("one", first), ("other", second)) if not run.has_ended]
    if waiting:
        return None, " and ".join(waiting)
    if first.has_failed and second.has_failed:
        return 0.0, BOTH_FAILED
    if first.has_failed or second.has_failed:
        present = second_value if first.has_failed else first_value
        if present.value is None:
            return None, present.reason_if_null
        losing = 1.0 if question.better == "min" else -1.0
        sign = losing if first.has_failed else -losing
        return sign * math.inf, f"{'one' if first.has_failed else 'other'} failed"
    if first_value.value is None or second_value.value is None:
        return None, first_value.reason_if_null or second_value.reason_if_null
    if first_value.kind != second_value.kind:
        return None, KINDS.format(*sorted((first_value.kind, second_value.kind)))
    if question.scale == "difference":
        return first_value.value - second_value.value, None
    if first_value.value == second_value.value:
        return 0.0, None
    if min(first_value.value, second_value.value) <= 0:
        return None, NO_RATIO
    return math.log(first_value.value / second_value.value), None


def is_modelled(group: Group, other: Group, metric: str) -> bool:
    """Whether the metric is modelled with weights. A metered energy with gaps is estimated too, but by none."""
    if not (metric.startswith(("energy.", "carbon.")) or metric.endswith((".energy", ".carbon"))):
        return False  # carbon follows energy
    return any(value(run, metric).kind == "estimated" and run.number(RATIO_LOW) is not None for run in (*group.runs, *other.runs))


def weights_of(*groups: Group) -> WeightRange:
    """Return the plausible range of the ratio of the weights for the runs of all these groups."""
    return weight_range(run.record for group in groups for run in group.runs if run.record is not None and run.is_done)


def weighted(ratio: float) -> Measure:
    """Return the measure of a metric at a ratio of the weights, in CPU seconds: the other weight cancels."""

    def measure(run: Run, metric: str) -> MetricValue:
        plain = value(run, metric)
        if plain.value is None or run.record is None:
            return plain
        cpu = cores = count = None  # CPU seconds and reserved core seconds that it rests on, and by what their sum is divided
        if metric == "energy.trial":
            used = [busy_cpu(attempt) for _, attempt in started_attempts(run.record)]
            measured = [use for use in used if use is not None]
            cpu = sum(cpu_ns for cpu_ns, _ in measured) / 1e9 if len(measured) == len(used) else None
            cores = run.spec.experiment.workers.cpus * (sum(busy_ns for _, busy_ns in measured) / 1e9)
            count = run.number("trials.used")
        elif metric in _PARTS:
            part, divisor = _PARTS[metric]
            cpu, cores = run.number(f"energy.cpu_seconds{part}"), run.number("energy.reserved_core_seconds")
            if part and cores is not None:  # they are reserved all the time
                whole, length = run.number("time.jct"), run.number(f"time.jct{part}")
                cores = cores * length / whole if whole and length is not None else None
            count = 1.0 if divisor is None else run.number(divisor)
        if trained_on_gpu(run.record) or cpu is None or cores is None or not count:
            return missing("s", UNKNOWN)
        return metric_value((cpu + ratio * cores) / count, "s", kind=plain.kind)

    return measure
