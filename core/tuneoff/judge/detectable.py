"""What the planned seeds can find, said before any compute is spent: in standard deviations, and by measured spreads in units."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tuneoff.base.format import counted, counted_range
from tuneoff.base.identity import canonical_json
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.variants import TASK
from tuneoff.judge.answers.analysis_plan import frozen
from tuneoff.judge.answers.answer import Answers, Question, Verdict
from tuneoff.judge.answers.judging import FEWEST_SEEDS
from tuneoff.judge.answers.phrases import signed
from tuneoff.judge.stats.power import detectable
from tuneoff.judge.stats.sign_flip import least_p
from tuneoff.judge.stats.signed_rank import least_n

POWER = 0.8
FEWEST_FOR_SPREAD = 3  # paired seeds
LABEL = "detectable: "


class Spread(NamedTuple):
    """How far the paired differences of a pair spread on the question's scale, and how its values go together."""

    question: Question
    deviation: float
    correlation: float | None  # None: one of the two has no spread, or values that have no ratio
    n: int


def spreads(answers: Answers) -> dict[str, list[Spread]]:
    """Return the measured spreads by metric: of each compared pair in each scope that has enough paired seeds."""
    by_metric: dict[str, list[Spread]] = defaultdict(list)
    for verdict in answers.verdicts:
        measured = None if verdict.is_noise else spread(verdict)
        if measured is not None:
            by_metric[verdict.question.metric].append(measured)
    return dict(by_metric)


def detectable_lines(plan: Plan, measured: Mapping[str, Sequence[Spread]] | None = None, source: str = "") -> list[str]:
    """Return what would be found with the planned seeds; nothing where the plan compares nothing.

    Args:
        measured: spreads by metric of earlier results, or None.
        source: what they are called: the results folder.
    """
    compared = plan.analysis.get("comparisons")
    variants = [pair.get("variant") for pair in compared if isinstance(pair, Mapping)] if isinstance(compared, Sequence) else []
    if not variants:
        return []
    pairs = max(Counter(map(canonical_json, variants)).values())  # of the scope with the most of them
    rules = frozen(plan.analysis)
    alpha = rules.alpha(pairs)
    family = f"for each of {', '.join(rules.questions)}; family of {max(rules.family_size, pairs)}"
    n, can_find = rules.seeds, rules.seeds >= max(FEWEST_SEEDS, least_n(alpha))
    if n < FEWEST_SEEDS:
        text = f"with {counted(n, 'seed')} there is no verdict: below {FEWEST_SEEDS} a report only describes"
    elif not can_find:
        text = f"with {n} seeds nothing can be found: a verdict needs at least {least_n(alpha)}"
    else:
        effect = f"{detectable(n, alpha, POWER):.1f} standard deviations of the paired difference"
        text = f"with {n} seeds a difference of {effect} would be found in {100 * POWER:.0f} % of the cases"
    lines = [f"{LABEL}{text} ({family})"]
    lines += _across(plan, rules.seeds, alpha)
    if measured is not None and can_find:
        lines += [
            f"  {name} ({metric}): {_by_unit(measured.get(metric, ()), rules.seeds, alpha, source)}"
            for name, metric in rules.questions.items()
        ]
    return lines


def _across(plan: Plan, seeds: int, alpha: float) -> list[str]:
    """Say whether the sampler streams of a file's tasks are enough for a claim across them; nothing for a file without tasks."""
    experiments = [run.spec.experiment for run in plan.counted]
    digests = {experiment.variant[TASK]: experiment.task_digest for experiment in experiments if TASK in experiment.variant}
    if not digests:
        return []
    streams = len(set(digests.values())) * seeds
    can = least_p(streams) <= alpha
    how = "a difference that has one sign in all of them would be found" if can else "no difference can be found, however large"
    return [f"  across its {counted(len(digests), 'task')}, {counted(streams, 'sampler stream')}: {how}"]


def _by_unit(measured: Sequence[Spread], n: int, alpha: float, source: str) -> str:
    if not measured:
        return f"no pair of {source} has {FEWEST_FOR_SPREAD} seeds with it"
    over = f"{counted(len(measured), 'pair')} in {source}, {counted_range((spread.n for spread in measured), 'seed')}"
    effect = detectable(n, alpha, POWER)
    deviations = sorted(spread.deviation for spread in measured)
    low, high = deviations[0], deviations[-1]
    question = measured[0].question
    if statistics.median(deviations) == 0:
        return f"not known: the differences of {over}, have no spread"
    span = "by the spread of" if low == high else f"{_amount(effect * low, question)} to {_amount(effect * high, question)} by"
    correlations = [spread.correlation for spread in measured if spread.correlation is not None]
    together = f"; correlation of pairs {statistics.median(correlations):.2f}" if correlations else ""
    return f"{_amount(effect * statistics.median(deviations), question)} ({span} {over}{together})"


def _amount(size: float, question: Question) -> str:
    return signed(size, question).removeprefix("+")


def spread(verdict: Verdict) -> Spread | None:
    """Return the measured spread of a pair; None: it has too few seeds."""
    rows = [
        (row.one, row.other, row.difference)
        for row in verdict.differences
        if row.one is not None and row.other is not None and row.difference is not None and math.isfinite(row.difference)
    ]
    if len(rows) < FEWEST_FOR_SPREAD:
        return None
    ones, others, differences = zip(*rows, strict=True)
    correlation = None
    is_ratio = verdict.question.scale == "ratio"
    if min(len(set(ones)), len(set(others))) > 1 and not (is_ratio and min(*ones, *others) <= 0):  # equal zeros have no logarithm
        sides = [[math.log(value) for value in side] if is_ratio else side for side in (ones, others)]
        correlation = statistics.correlation(*sides)
    return Spread(question=verdict.question, deviation=statistics.stdev(differences), correlation=correlation, n=len(rows))
