"""A framework over its releases: its figures, and the steps between neighbours that the verdicts' own statistics show.

All neighbours and figures of a framework are one family, so where nothing changed any step is shown with at most the family's
error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.format import MISSING, counted
from tuneoff.base.packages import release
from tuneoff.experiment.metric_catalogue import metric as definition
from tuneoff.judge.answers.analysis_plan import Frozen
from tuneoff.judge.answers.answer import ROBUST, Verdict
from tuneoff.judge.answers.judging import PairComparison
from tuneoff.judge.answers.phrases import difference_text, is_decided, seen_text, signed
from tuneoff.judge.choice.added import PER_JOB, PER_REPORT, PER_TRIAL
from tuneoff.judge.choice.choice import ENERGY, QUALITY, VALIDATED, Point, ReleaseStep, Row, ScalingCurve
from tuneoff.judge.choice.curve import ADDED_TO_JOB, ADDED_TO_TRIAL, ASK, FIGURES, PER_FURTHER_TRIALS, TREE
from tuneoff.judge.groups import Group
from tuneoff.judge.stats.sign_flip import generator
from tuneoff.judge.stats.signed_rank import bounds
from tuneoff.record.metric_value import metric_value

if TYPE_CHECKING:
    from tuneoff.judge.stats.location import Floats

POWER = 0.9
SAMPLES = 2_000
SMALLEST_STEP = f"smallest step shown in {100 * POWER:.0f} %"
MOST_PACKAGES = 6  # that are named
Figure = tuple[str, Sequence[Group]]  # a metric, and the groups of the releases, the oldest first


def release_curves(rows: Iterable[Row], plan: Frozen) -> Iterator[ScalingCurve]:
    """Yield the figures of each framework with several releases, over these, in the first variant that they have.

    Where jobs of more trials differ in these alone, the ask in the longest ones is a figure too, and the memory that each
    further trial takes.
    """
    for framework, of_framework in frameworks(rows):
        yield from history(framework, figures(of_framework), plan)


def frameworks(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the name of each framework with several releases, and its rows, the oldest release first.

    Beside the name stands the label without a release, where that says more than which adapter it is.
    """
    by_framework: dict[str, dict[str, Row]] = {}
    for row in rows:
        if not row.excluded and (version := _version(row.first.group)):
            by_framework.setdefault(row.label.replace(f"=={version}", "", 1), {}).setdefault(version, row)
    for label, by_version in by_framework.items():
        if len(by_version) > 1:
            ordered = [by_version[version] for version in sorted(by_version, key=release)]
            records = (record for row in ordered for record in row.first.group.done.values())
            name = next((str(framework) for record in records if (framework := record.versions.get("framework"))), label)
            yield name if label in (name, ordered[0].first.group.adapter) else f"{name} ({label})", ordered


def _version(group: Group) -> str:
    """Return the framework's release that a group's runs had; "" without a framework, or before the first run is done."""
    if group.spec.environment is not None and group.spec.environment.version is not None:
        return group.spec.environment.version
    return next((str(version) for record in group.done.values() if (version := record.versions.get("framework_version"))), "")


def figures(rows: Sequence[Row]) -> list[Figure]:
    """Return what is drawn of a framework's rows, the oldest release first: each figure that any of them has."""
    first = rows[0].first.group
    alike = [
        {
            column.group.spec.experiment.budget.trials: column.group
            for column in row.columns.values()
            if column.group.spec.scope_key("budget.trials") == first.spec.scope_key("budget.trials")
        }
        for row in rows
    ]
    numbers = sorted(set.intersection(*map(set, alike)))  # that all releases have
    if not numbers:
        return []
    few, many = ([by_number[number] for by_number in alike] for number in (numbers[0], numbers[-1]))
    longer = {group.label: group for group in many} if len(numbers) > 1 else {}
    derived = [_with_derived(group, longer.get(group.label)) for group in few]
    quality = QUALITY if any(group.estimate(QUALITY).present for group in few) else VALIDATED
    memory = PER_FURTHER_TRIALS if longer else TREE
    metrics = (ADDED_TO_JOB, ADDED_TO_TRIAL, PER_REPORT, memory, ENERGY, quality, ASK)
    wanted = [*((metric, derived) for metric in metrics), *([(ASK, many)] if longer else [])]
    return [(metric, groups) for metric, groups in wanted if any(group.estimate(metric).present for group in groups)]


def _with_derived(group: Group, longer: Group | None) -> Group:
    """Return a group whose runs have the figures too that are no metrics of a run; `longer`: the same with more trials."""
    peaks = {} if longer is None else longer.estimate(TREE).by_seed
    trials = 0 if longer is None else longer.spec.experiment.budget.trials - group.spec.experiment.budget.trials
    runs = []
    for run in group.runs:
        parts = [part for name in PER_JOB if (part := run.number(name)) is not None]
        derived = {} if (trial := run.metric(PER_TRIAL)) is None else {ADDED_TO_TRIAL: trial}
        if len(parts) == len(PER_JOB):
            derived[ADDED_TO_JOB] = metric_value(sum(parts) / MILLISECONDS, "s")
        if (peak := run.number(TREE)) is not None and run.seed in peaks:
            derived[PER_FURTHER_TRIALS] = metric_value(1000 * (peaks[run.seed] - peak) / trials, "MB")
        runs.append(run.with_metrics(derived))
    return replace(group, runs=tuple(runs))


def history(framework: str, figures: Sequence[Figure], plan: Frozen) -> Iterator[ScalingCurve]:
    """Yield a curve per figure, with a step between each two neighbours."""
    comparisons = sum(len(groups) - 1 for _, groups in figures)
    for metric, groups in figures:
        trials, shortest = _trials(groups), _trials(figures[0][1])
        name = FIGURES[metric][0].lower() + ("" if trials == shortest else f" of {counted(trials, 'trial')}")
        question = plan.question(name, metric, groups[0].spec.experiment)
        verdicts = [
            PairComparison(newer, older, question, plan.alpha(comparisons)).verdict() for older, newer in pairwise(groups)
        ]
        points = [
            Point(scope=_version(group), x=float(position), value=value)
            for position, group in enumerate(groups)
            if (value := group.median(metric)) is not None and math.isfinite(value.estimate)
        ]
        estimated = ["estimated"] if any(group.estimate(metric).is_estimated for group in groups) else []
        yield ScalingCurve(
            over="release",
            metric=metric,
            beside=", ".join((counted(trials, "trial"), *estimated)),
            lines={framework: tuple(points)},
            limits={},
            steps=tuple(
                ReleaseStep(older=_version(older), newer=_version(newer), verdict=verdict, also=_changed_packages(older, newer))
                for (older, newer), verdict in zip(pairwise(groups), verdicts, strict=True)
            ),
            smallest_step=_smallest_step(metric, groups, verdicts),
        )


def _trials(groups: Sequence[Group]) -> int:
    return groups[0].spec.experiment.budget.trials


def residuals(metric: str, groups: Sequence[Group]) -> tuple[float, Floats]:
    """Return the mean of a figure over releases, and what is left (releases, seeds) without the means of releases and seeds.

    Of the seeds that all releases have; of logarithms where ratios are compared; with the standard deviation of the whole.

    Raises:
        ValueError: fewer than two releases or seeds have it, or a value has no logarithm.
    """
    import numpy as np

    by_seed = [group.estimate(metric).by_seed for group in groups]
    table = np.array([[of[seed] for seed in sorted(set.intersection(*map(set, by_seed)))] for of in by_seed])
    releases, seeds = table.shape
    is_ratio = definition(metric).scale == "ratio"
    if min(releases, seeds) < 2 or not np.isfinite(table).all() or (is_ratio and table.min() <= 0):
        raise ValueError(f"{metric} must be measured in at least 2 releases with the same 2 seeds or more, above 0 for a ratio")
    table = np.log(table) if is_ratio else table
    rest = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return float(table.mean()), rest * math.sqrt(rest.size / ((releases - 1) * (seeds - 1)))


def _smallest_step(metric: str, groups: Sequence[Group], verdicts: Sequence[Verdict]) -> float | None:
    """Return the smallest step, on the question's scale, that is shown with a probability of POWER by the measured spread.

    The test that judges shows a step of a sample where the lower end of its interval is above 0. The samples are differences of
    two residuals, which need not be normal. The step is not below the margin. None where so few seeds show no step at all.
    """
    import numpy as np

    interval = next((verdict.interval for verdict in verdicts if verdict.sensitivities and verdict.interval is not None), None)
    if interval is None:
        return None
    try:
        _, rest = residuals(metric, groups)
    except ValueError:
        return None
    samples = np.subtract(*generator("smallest step", metric).choice(rest.ravel(), (2, SAMPLES, interval.n)))
    step = float(np.quantile(-bounds(samples, 1 - interval.confidence).low, POWER))
    return max(step, verdicts[0].question.margin or 0.0) if math.isfinite(step) else None


def _changed_packages(older: Group, newer: Group) -> tuple[str, ...]:
    """Return what else differs between the environments of two releases: `alembic 1.13.1 to 1.14.0`."""
    versions = [_installed(group) for group in (older, newer)]
    if not all(versions):
        return ()
    pairs = {name: tuple(side.get(name, "none") for side in versions) for name in sorted({*versions[0], *versions[1]})}
    releases = (_version(older), _version(newer))
    return tuple(
        f"{name} {before} to {after}"
        for name, (before, after) in pairs.items()
        if before != after and (before, after) != releases
    )


def _installed(group: Group) -> Mapping[str, str]:
    environment = next((record.environment for record in group.done.values()), {})
    packages = environment.get("distributions")
    return {"python": str(environment.get("python")), **packages} if isinstance(packages, Mapping) else {}


def _step_text(verdict: Verdict) -> str:
    """Return a step that is shown: `added to a job 1.2x (1.1 to 1.3), +0.10 s`; failed runs decide all figures alike."""
    if any(verdict.failures):
        return seen_text(verdict)
    doubt = f" ({verdict.robustness})" if verdict.robustness != ROBUST else ""
    return f"{verdict.question.name} {'~' * verdict.is_estimated}{seen_text(verdict)}{doubt}"


def shown_steps(curve: ScalingCurve) -> dict[str, str]:
    """Return the size of each step that is shown, by the newer release."""
    return {
        step.newer: "failed runs" if any(verdict.failures) else difference_text(verdict.interval, verdict.question)
        for step in curve.steps
        if is_decided(verdict := step.verdict)
    }


def smallest_step_text(curve: ScalingCurve) -> str:
    """Return the smallest step that is shown in most cases: `1.08x`; MISSING where none is, however large."""
    if curve.smallest_step is None:
        return MISSING
    return signed(curve.smallest_step, curve.steps[0].verdict.question).removeprefix("+")


def release_lines(curves: Iterable[ScalingCurve]) -> Iterator[str]:
    """Yield for each two neighbours which steps are shown, and what else changed between them."""
    by_neighbours: dict[tuple[str, str, str], list[ReleaseStep]] = {}
    for curve in curves:
        for step in curve.steps:
            by_neighbours.setdefault((next(iter(curve.lines)), step.older, step.newer), []).append(step)
    for (framework, older, newer), steps in by_neighbours.items():
        shifts = dict.fromkeys(_step_text(step.verdict) for step in steps if is_decided(step.verdict))
        reasons = dict.fromkeys(step.verdict.reason for step in steps)
        nothing = f"no step is shown of {counted(len(steps), 'figure')}" + (
            f": {next(iter(reasons))}" if len(reasons) == 1 else ""
        )
        also = steps[0].also
        more = f" and {len(also) - MOST_PACKAGES} more" if len(also) > MOST_PACKAGES else ""
        beside = f" Also changed: {', '.join(also[:MOST_PACKAGES])}{more}." if also else ""
        yield f"{framework} {newer} against {older}: {'; '.join(shifts) or nothing}.{beside}"
