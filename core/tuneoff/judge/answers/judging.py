"""Which cells of a scope are compared, the verdict on a pair, and what it is under other reasonable choices."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
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
from tuneoff.judge.answers.differences import BOTH_FAILED, ENDS, UNKNOWN, is_modelled, pair, weighted, weights_of
from tuneoff.judge.groups import Group, log_billing_step
from tuneoff.judge.run_values import FEWEST_UNDISTURBED, disturbance, is_disturbed, value
from tuneoff.judge.runs import Scope
from tuneoff.judge.stats.location import Interval, median
from tuneoff.judge.stats.paired import Estimator, Judgement, judge, judge_without_each
from tuneoff.judge.stats.power import seeds_needed
from tuneoff.judge.stats.signed_rank import least_n
from tuneoff.measure.power.cpu_table import WeightRange
from tuneoff.record.metric_value import Kind

FEWEST_SEEDS = 10  # paired; with fewer the intervals are shown, and nothing is claimed
FEWEST_FOR_INTERVAL = 2
FEWEST_FOR_SPREAD = 5
DECIDED = (Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)


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
        blocked = self.pair.seeds.waiting or self.pair.excluded
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
        planned, used = len(self.pair.seeds.planned), len(self.pair.values)
        if planned < FEWEST_SEEDS:
            return f"{counted(planned, 'seed')} planned for both, and a verdict needs {FEWEST_SEEDS}"
        if self.pair.seeds.waiting is not None or used >= FEWEST_SEEDS or self.pair.excluded is not None:
            return None
        reasons = [one.reason for one in self.pair.differences if one.difference is None and one.reason]
        most = f": {max(set(reasons), key=reasons.count)}" if reasons else ""
        return f"{used} of {counted(len(self.pair.seeds.used), 'seed')} can be compared, and a verdict needs {FEWEST_SEEDS}{most}"

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
