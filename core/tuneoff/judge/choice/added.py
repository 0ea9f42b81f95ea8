"""What a framework adds to a job, to a trial and to a report, and from which lengths on that is little.

Of the undisturbed runs where there are six of them, else of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tuneoff.base.clock import MILLISECONDS
from tuneoff.judge.groups import Group
from tuneoff.judge.results import FEWEST_UNDISTURBED, POOL, is_disturbed
from tuneoff.judge.stats.location import Interval, median

SHARES = (0.05, 0.01)  # of a job, below which what a framework adds to it and to its trials is called little
FURTHEST = 10.0  # times what was measured: beyond it a length is extrapolated
PER_TRIAL, PER_REPORT, REPORTS = "overhead.further_trial", "overhead.per_report", "overhead.reports"
EPOCHS, USED = "epochs.trained", "trials.used"
PER_JOB = (
    "time.deploy",
    "time.setup",
    "time.result_collection",
    "time.undeploy",
    "overhead.job_start",
)  # what a job takes besides its trials and its test
BySeed = Mapping[int, float]  # infinite of a run that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """From which length of a trial, an epoch or a job on, in s, a framework adds less than half of `share` to it.

    Where both trials and the job are longer it adds less than `share` to the whole. `low` to `high`: the interval of the median;
    the lowest and the highest run where there `are_few`.
    """

    share: float
    seconds: float
    low: float
    high: float
    is_extrapolated: bool  # beyond FURTHEST times the longest trial or job of the same framework
    are_few: bool  # undisturbed runs: fewer than six, so that all runs count


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What a framework adds, in s. None: no run has it, or most failed.

    `own_per_job`: deploy, setup, its workers' start, result collection, un-deploy. `per_job`: that above the baseline, by seed;
    None without a baseline of the same platform and start, and of the baseline. `per_trial`: each trial beyond the workers'
    first ones, without its reports; `per_report`: each of its `reports`, which may be fewer than its `epochs`;
    `per_whole_trial`: a trial with so many.
    """

    baseline: str | None = None  # its label
    own_per_job: Interval | None = None
    per_job: Interval | None = None
    per_trial: Interval | None = None
    per_report: Interval | None = None
    reports: float | None = None
    epochs: float | None = None
    per_whole_trial: Interval | None = None
    lengths: tuple[Length, ...] = ()  # of trials with so many epochs, by SHARES; none where nothing tells them
    epoch_lengths: tuple[Length, ...] = ()  # of an epoch of these trials, and of any with more epochs
    job_lengths: tuple[Length, ...] = ()


def baseline_of(group: Group, groups: Iterable[Group]) -> Group | None:
    """Return the plain pool on the same platform, with the same start and variant: of the same sampler where it has runs."""
    candidates = [
        candidate
        for candidate in groups
        if candidate.adapter == POOL
        and candidate.replicate == 0
        and candidate.same_as is None
        and candidate.done
        and (candidate.spec.platform, candidate.start, candidate.scope.variant, candidate.scope.task)
        == (group.spec.platform, group.start, group.scope.variant, group.scope.task)
    ]
    return next((candidate for candidate in candidates if candidate.scope == group.scope), next(iter(candidates), None))


def added(group: Group, baseline: Group | None, longest: tuple[float, float], confidence: float) -> Added:
    """Return what a group's runs show.

    `baseline`: what its jobs are held to, None without one; `longest`: the longest trial and job of the same framework that were
    measured, in s, as medians of its groups.
    """

    def over_runs(values: BySeed, groups: Sequence[Group] = (group,)) -> Interval | None:
        return _median(values, groups, confidence)

    jobs, trials, each = (_by_seed(group, names) for names in (PER_JOB, (PER_TRIAL,), (PER_REPORT,)))
    numbers, trained, used = (_by_seed(group, (name,), unit=1.0) for name in (REPORTS, EPOCHS, USED))
    of_reports = {seed: number * each.get(seed, 0.0) for seed, number in numbers.items() if math.isfinite(number)}
    whole = {seed: seconds + of_reports.get(seed, 0.0) for seed, seconds in trials.items()}
    both = [group, baseline] if baseline is not None else []
    floor = _by_seed(baseline, PER_JOB) if baseline is not None and baseline.label != group.label else {}
    above = {seed: seconds - floor[seed] for seed, seconds in jobs.items() if math.isfinite(floor.get(seed, math.inf))}
    reports = over_runs(numbers)
    epochs = over_runs({seed: number / used[seed] for seed, number in trained.items() if 0 < used.get(seed, 0) < math.inf})
    lengths = _lengths(whole, [group], confidence, longest[0])
    return Added(
        baseline=baseline.label if baseline is not None else None,
        own_per_job=over_runs(jobs),
        per_job=over_runs(above, both),
        per_trial=over_runs(trials),
        per_report=over_runs(each),
        reports=reports.estimate if reports is not None else None,
        epochs=epochs.estimate if epochs is not None else None,
        per_whole_trial=over_runs(whole),
        lengths=lengths,
        epoch_lengths=tuple(
            replace(of, **{name: getattr(of, name) / epochs.estimate for name in ("seconds", "low", "high")})
            for of in lengths
            if epochs is not None and epochs.estimate > 0
        ),
        job_lengths=_lengths(above, both, confidence, longest[1]),
    )


def covering(lengths: Iterable[Length], lower_end: Callable[[Iterable[float]], float] = min) -> Length | None:
    """Return the range over conditions and tasks: from the lowest to the highest end; None without any.

    `lower_end`: max for where the last of several frameworks adds little.
    """
    all_lengths = list(lengths)
    if not all_lengths:
        return None
    return replace(
        max(all_lengths, key=lambda length: length.seconds),
        low=lower_end(length.low for length in all_lengths),
        high=max(length.high for length in all_lengths),
        is_extrapolated=any(length.is_extrapolated for length in all_lengths),
        are_few=any(length.are_few for length in all_lengths),
    )


def _by_seed(group: Group, metrics: Sequence[str], unit: float = MILLISECONDS) -> dict[int, float]:
    """Return the sum of some metrics by seed, in s; nothing where no run has them."""
    parts = [group.estimate(metric).by_seed for metric in metrics]
    sums = {seed: sum(part[seed] for part in parts) / unit for seed in parts[0] if all(seed in part for part in parts)}
    return {**sums, **{run.seed: math.inf for run in group.runs if run.has_failed}} if sums else {}


def _counted(values: BySeed, groups: Sequence[Group]) -> tuple[list[float], bool]:
    """Return the values of the seeds that nobody disturbed in any of the groups; all, and True, where these are not six."""
    disturbed = {run.seed for group in groups for run in group.runs if is_disturbed(run) is not False}
    undisturbed = [value for seed, value in values.items() if seed not in disturbed]
    are_few = len(undisturbed) < FEWEST_UNDISTURBED
    return (list(values.values()) if are_few else undisturbed), are_few


def _median(values: BySeed, groups: Sequence[Group], confidence: float) -> Interval | None:
    """Return the median with its interval; None where there is none, or most runs failed."""
    counted, _ = _counted(values, groups)
    interval = median(counted, confidence) if counted else None
    return interval if interval is not None and math.isfinite(interval.estimate) else None


def _lengths(values: BySeed, groups: Sequence[Group], confidence: float, longest: float) -> tuple[Length, ...]:
    """Return the lengths by what is added by seed; a run that failed tells none."""
    if _median(values, groups, confidence) is None:
        return ()
    counted, are_few = _counted({seed: value for seed, value in values.items() if math.isfinite(value)}, groups)
    interval = median(counted, confidence)
    ends = (min(counted), max(counted)) if are_few else (interval.low, interval.high)
    low, seconds, high = (max(0.0, of) for of in (ends[0], interval.estimate, ends[1]))
    return tuple(
        Length(
            share=share,
            seconds=seconds / (share / 2),
            low=low / (share / 2),
            high=high / (share / 2),
            is_extrapolated=high / (share / 2) > FURTHEST * longest,
            are_few=are_few,
        )
        for share in SHARES
    )
