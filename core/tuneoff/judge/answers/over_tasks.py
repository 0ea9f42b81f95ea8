"""What the tasks of a file say of a pair: the mean of its paired differences, by sign flips of what shares a sampler stream.

Each task has the same weight. A difference is of two runs of one task and seed: of logarithms on the ratio scale, of normalised
regret on validation for quality. Runs of one seed in tasks that change the same thing share their samplers' stream, so they flip
together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from tuneoff.experiment.matrix_parts import AnchorsPart
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import FAILS, HOLDS, UNCHECKED, OverTasks, Question
from tuneoff.judge.answers.differences import UNKNOWN, Measure, is_modelled, pair, weighted, weights_of
from tuneoff.judge.groups import Group, log_billing_step
from tuneoff.judge.run_values import FEWEST_UNDISTURBED, Value, disturbance, is_disturbed, value
from tuneoff.judge.runs import Run
from tuneoff.judge.stats.paired import judge
from tuneoff.judge.stats.sign_flip import SignFlip, least_p, sign_flip

Cells = Mapping[str, Group]  # by task
WORST = 1.0  # regret of the median of random search: what a failed run counts at least
VALIDATION = "quality.validation"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A paired difference: of which runs of which task, in which sampler stream."""

    task: str
    runs: tuple[Run, Run]
    stream: Hashable
    difference: float
    half_step: float  # how far it may be off, as time is billed in whole units


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskComparison:
    """How pairs are compared. `is_quality`: by the regret of each task's anchors."""

    question: Question
    plan: Frozen
    is_quality: bool

    def over(self, one: Cells, other: Cells, tasks: Sequence[str], family: int, *, is_noise: bool = False) -> OverTasks:
        """Return what the tasks say of two adapters; `family`: of how many pairs it is one."""
        names = next(iter(one.values())).label, next(iter(other.values())).label
        bare = OverTasks(one=names[0], other=names[1], tasks=tuple(tasks), is_noise=is_noise)
        error = self.plan.error
        rows, scale, reason = self._rows(one, other, tasks, None)
        if reason or not rows:
            return replace(bare, reason=reason or "no run of one can be compared with one of the other")
        found, weights = [rows], None
        if any(is_modelled(one[task], other[task], self.question.metric) for task in tasks):
            weights = weights_of(*(cells[task] for cells in (one, other) for task in tasks))
            for ratio in (weights.low, weights.high):
                again, _, reason = self._rows(one, other, tasks, weighted(ratio))
                if reason or len(again) < len(rows):
                    return replace(bare, reason=f"modelled: {UNKNOWN}")
                found.append(again)
        mean = self._flipped(found, [row.stream for row in rows], error / family, scale)
        return replace(
            bare,
            tasks=tuple(dict.fromkeys(row.task for row in rows)),
            disturbance=disturbance(run for row in rows for run in row.runs),
            weights=weights,
            is_estimated=any(value(run, self.question.metric).kind == "estimated" for row in rows for run in row.runs),
            without_disturbed=self._without_disturbed(found, mean, error / family, scale) if mean.p * family <= error else "",
            mean=mean.interval,
            p=min(1.0, mean.p * family),
            ahead=_ahead(rows, self.better),
            failures=(sum(row.runs[0].has_failed for row in rows), sum(row.runs[1].has_failed for row in rows)),
        )

    @property
    def better(self) -> str:
        return "min" if self.is_quality else self.question.better

    def _rows(
        self, one: Cells, other: Cells, tasks: Sequence[str], measure: Measure | None
    ) -> tuple[list[_Row], float, str | None]:
        """Return the differences, the greatest size of what was subtracted, and why none may be compared."""
        rows: list[_Row] = []
        scale = 0.0
        for task in tasks:
            ours, theirs = one[task], other[task]
            if self.is_quality:
                asked = replace(self.question, metric=VALIDATION, better="min", scale="difference")
                anchors = anchors_of(ours, self.plan)
                found = pair(ours, theirs, asked, _regret(anchors)) if anchors is not None else None
            else:
                found = pair(ours, theirs, self.question, measure or value)
            if found is None:
                continue
            if found.excluded is not None:
                return [], 0.0, f"{task}: {found.excluded}"
            scale = max(scale, found.scale)
            changes = ours.spec.experiment.task_digest
            half = log_billing_step((ours, theirs), self.question.metric) / 2
            runs = ours.by_seed, theirs.by_seed
            rows += [
                _Row(
                    task=task,
                    runs=(runs[0][row.seed], runs[1][row.seed]),
                    stream=(changes, row.seed),
                    difference=row.difference,
                    half_step=half,
                )
                for row in found.usable
                if row.difference is not None
            ]
        return rows, scale, None

    def _without_disturbed(self, found: Sequence[Sequence[_Row]], claimed: SignFlip, alpha: float, scale: float) -> str:
        """Say whether a claim holds by the pairs that nobody disturbed, at the least error that so many units allow."""
        kept = [place for place, row in enumerate(found[0]) if all(is_disturbed(run) is False for run in row.runs)]
        if len(kept) == len(found[0]):
            return ""
        rest = [[rows[place] for place in kept] for rows in found]
        units = [row.stream for row in rest[0]]
        if len(set(units)) < FEWEST_UNDISTURBED:
            return UNCHECKED
        error = max(alpha, least_p(len(set(units))))
        again = self._flipped(rest, units, error, scale)
        return HOLDS if again.p <= error and again.interval.estimate * claimed.interval.estimate > 0 else FAILS

    def _flipped(self, found: Sequence[Sequence[_Row]], units: Sequence[Hashable], alpha: float, scale: float) -> SignFlip:
        """Return the test of the first rows; what they are under other weights of a model only widens it."""
        weights = _weights(found[0])
        least = WORST if self.is_quality else 0.0
        half = sum(weight * row.half_step for weight, row in zip(weights, found[0], strict=True))
        tests = []
        for rows in found:
            values = [row.difference for row in rows]
            test = sign_flip(values, weights, units, alpha, least=least, rounding_scale=scale, half_step=half)
            tests.append(_by_ranks_too(test, values, alpha, scale))
        intervals = [one.interval for one in tests]
        low, high = min(one.low for one in intervals), max(one.high for one in intervals)
        estimates = [one.estimate for one in intervals]
        p = max(one.p for one in tests) if min(estimates) * max(estimates) > 0 or len(tests) == 1 else 1.0
        return SignFlip(interval=replace(intervals[0], low=low, high=high), p=p)


def _by_ranks_too(test: SignFlip, values: Sequence[float], alpha: float, scale: float) -> SignFlip:
    """Return what also holds with failures as worse than any value, where the one that is ahead failed and the other did not.

    In a mean a failure has a made-up size, which many small differences can outweigh.
    """
    ahead = test.interval.estimate
    if not any(math.isinf(value) and value * ahead < 0 for value in values):
        return test
    ranked = judge(values, margin=None, alpha=alpha, rounding_scale=scale)
    low, high = min(test.interval.low, ranked.interval.low), max(test.interval.high, ranked.interval.high)
    p = max(test.p, ranked.p) if ranked.interval.estimate * ahead > 0 else 1.0
    return SignFlip(interval=replace(test.interval, low=low, high=high, method=f"{test.interval.method}; {ranked.method}"), p=p)


def _weights(rows: Sequence[_Row]) -> list[float]:
    """Return the weights that give each task the same, however many of its seeds can be compared."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.task] = counts.get(row.task, 0) + 1
    return [1 / counts[row.task] / len(counts) for row in rows]


def _ahead(rows: Sequence[_Row], better: str) -> tuple[int, int]:
    """Return in how many tasks the mean of the differences is for the one, and in how many for the other."""
    sums: dict[str, float] = {}
    for row in rows:
        both = sums.get(row.task, 0.0), row.difference
        sums[row.task] = 0.0 if both[0] == -both[1] else sum(both)
    below, above = sum(one < 0 for one in sums.values()), sum(one > 0 for one in sums.values())
    return (below, above) if better == "min" else (above, below)


def _regret(anchors: AnchorsPart) -> Measure:
    def measure(run: Run, metric: str) -> Value:
        found = value(run, metric)
        return found if found.value is None else replace(found, value=normalised(found.value, anchors))

    return measure


def anchors_of(cell: Group, plan: Frozen) -> AnchorsPart | None:
    """Return the frozen anchors of a cell's task; None where there are none, or they are of another direction.

    With the best known value below random search (where great is better) the better adapter would have the greater regret.
    """
    found, objective = plan.anchors.get(cell.scope.task), cell.spec.experiment.objective
    is_usable = found is not None and (found.best_known > found.random_search) == (objective.mode == "max")
    return found if is_usable else None


def normalised(validation: float, anchors: AnchorsPart) -> float:
    """Return the regret of a validation value, for either direction of the metric: better than the best known is below 0."""
    return (anchors.best_known - validation) / (anchors.best_known - anchors.random_search)


def regrets(cell: Group, anchors: AnchorsPart) -> list[float]:
    """Return the regret of each run that ended; +inf for one that failed."""
    found = []
    for run in cell.runs:
        selected = value(run, VALIDATION).value
        if run.has_failed:
            found.append(math.inf)
        elif selected is not None:
            found.append(normalised(selected, anchors))
    return found


def bounded(regret: list[float]) -> list[float]:
    """Return regrets with a failure as the worst anchor, 1, or as the worst of the same runs where that is worse.

    So a failure is never better than a success, and another adapter changes nothing.
    """
    worst = max([1.0, *(one for one in regret if math.isfinite(one))])
    return [one if math.isfinite(one) else worst for one in regret]
