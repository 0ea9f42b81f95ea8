"""Figures over what a matrix varies: the length of trials, their number, or the number of workers and what each of them has.

Up to how many workers does a framework keep them busy? From the utilization of jobs that differ in their workers alone.
The knee is where two asymptotes cross: few workers are each as busy as the fewest that were measured, and of many the framework
keeps no more than so many busy at once.

Source: P. J. Denning and J. P. Buzen, ACM Comput. Surv. 10 (1978) 225, section 5.2 (the saturation point N*).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, methodcaller

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.format import counted, duration_text, figure, score, two_digits
from tuneoff.experiment.spec import RunSpec
from tuneoff.judge.choice.added import FURTHEST, PER_REPORT, PER_TRIAL
from tuneoff.judge.choice.choice import ENERGY, QUALITY, VALIDATED, Limit, Over, Point, Row, ScalingCurve, ScopeColumn
from tuneoff.judge.choice.sharing import FAIRNESS, JOB, SLOWDOWN
from tuneoff.judge.results import Scope
from tuneoff.judge.stats.location import median
from tuneoff.record.metric_value import metric_value

BUSY = 95.0  # % of utilization; less is called a loss
Utilization = Mapping[int, float]  # in %, by the number of workers; 0: the run failed
LONGER = 2.0  # times the shortest trial: below, trials count as equally long
SHORTEST = 0.001  # s: trials that take no time have no share
MORE_REPORTS = 1.5  # of a trial: with fewer nothing tells what a report adds from what a trial does
MORE = 10.0  # times the fewest trials: below, numbers of trials are drawn over nothing
KILOBYTES = 1000.0  # per MB
ADDED, UTILIZATION = PER_TRIAL, "slots.utilization"
ASK, RATE, DRIVER, TREE = "stage.ask", "trials.per_second", "memory.driver_peak_rss", "memory.tree_peak_rss"
SPEED_UP, EFFICIENCY = "speed_up", "efficiency"  # the first two: over jobs with the fewest workers
LEVELS: Mapping[Over, tuple[str, str]] = {  # of which less may be enough: its unit, and the figure that decides
    "cpus": ("vCPU", JOB),
    "memory": ("MB", JOB),
    "trials": ("trials", QUALITY),
}
ADDED_TO_JOB, ADDED_TO_TRIAL, PER_FURTHER_TRIALS = "added.per_job", "added.per_trial", "added.memory"  # over releases
FIGURES = {  # what a curve shows, and its unit; "" for a score
    ADDED: ("Added to a trial, as a share of it", "%"),
    UTILIZATION: ("Utilization of the workers", "%"),
    ASK: ("Time of an ask, mean of a run", "ms"),
    RATE: ("Trials per second", "1/s"),
    SPEED_UP: ("Speed-up of the job", "x"),
    EFFICIENCY: ("Efficiency of the job", "%"),
    DRIVER: ("Memory of the coordinator process", "MB"),
    TREE: ("Memory of all its processes", "MB"),
    JOB: ("Job time", "s"),
    ADDED_TO_JOB: ("Added to a job", "s"),
    ADDED_TO_TRIAL: ("Added to a trial", "ms"),
    PER_REPORT: ("Added by a report", "ms"),
    PER_FURTHER_TRIALS: ("Memory of 1000 further trials", "MB"),
    SLOWDOWN: ("Slowdown of a job in its share of the machine", "x"),
    FAIRNESS: ("Fairness among jobs at the same time, Jain's index", "%"),
    ENERGY: ("Energy of a trial", "J"),
    QUALITY: ("Score on the test", ""),
    VALIDATED: ("Score on validation", ""),
}
Specs = Mapping[Scope, RunSpec]  # a run of each scope, in the order of the file
KEYS: Mapping[Over, str] = {  # of a variant
    "workers": "workers.count",
    "trials": "budget.trials",
    "cpus": "workers.cpus",
    "memory": "workers.memory_mb",
    "copies": "copies",
}


def curves(rows: Sequence[Row], sharing: Sequence[Row], specs: Specs) -> tuple[ScalingCurve, ...]:
    """Return what is added to a trial over its length, per number of workers, or over the workers, whichever has more values.

    Over workers also utilization, or the rate of trials that take no time, the time of an ask, and the speed-up of jobs that
    differ in nothing else; over trials the time of an ask, their rate, and memory. None where nothing of this varies. `sharing`:
    rows of `with_sharing`. `specs`: a run of each scope, in the order of the file. Tasks differ in more than in the length of
    their trials.
    """

    def drawn(
        over: Over, metrics: Iterable[str], times: float = 1.0, of: Sequence[Row] = rows, parts: Sequence[Specs] | None = None
    ) -> list[ScalingCurve]:
        """Return the curves in which x grows in a line, at least so many times."""
        parts = _apart(over, specs) if parts is None else parts
        every = (_curve(over, metric, of, part) for metric in metrics for part in parts)
        return [
            curve
            for curve in every
            if any(len(points) > 1 and points[-1].x >= times * points[0].x for points in curve.lines.values())
        ]

    alike = _together(specs, lambda spec: spec.experiment.workers.count)
    by_length = drawn("trial_seconds", [ADDED], LONGER, parts=alike)
    lengths = max((len(points) for curve in by_length for points in curve.lines.values()), default=0)
    if any(scope.task for scope in specs) or len(alike) > max(2, lengths):
        by_length = []
    take_time = any(_takes_time(column) for row in rows for column in row.columns.values())
    by_workers = (UTILIZATION, *(() if by_length else (ADDED,)), ASK) if take_time else (RATE, ASK)
    same_jobs = [part for part in _together(specs, methodcaller("scope_key", KEYS["workers"])) if len(part) > 1]
    sped_up = list(_with_speed_up(rows, same_jobs)) if same_jobs else []
    levels = [(over, metric) for over, (_, metric) in LEVELS.items() if metric == JOB or take_time]
    return (
        *drawn("workers", by_workers),
        *drawn("workers", (SPEED_UP, EFFICIENCY), of=sped_up, parts=same_jobs),
        *drawn("trials", (ASK, RATE, DRIVER, TREE), MORE),
        *(curve for over, metric in levels for curve in drawn(over, [metric])),
        *drawn("copies", (SLOWDOWN, FAIRNESS), of=sharing),
        *by_length,
    )


def scaling_lines(curves: Iterable[ScalingCurve], rows: Iterable[Row]) -> Iterator[str]:
    """Yield from how many workers on frameworks lose utilization, and what grows with the number of trials."""
    names = {row.label: row.marked for row in rows}
    for curve in curves:
        condition = f" with {curve.beside}" if curve.beside else ""
        if curve.limits:
            texts = "; ".join(f"{names[label]} {limit.text}" for label, limit in curve.limits.items())
            yield f"Utilization is below {BUSY:g} %{condition}: {texts}."
        if curve.metric == SPEED_UP:
            efficiencies = [
                f"{names[label]} {two_digits(last.value.estimate)}x from {first.x:.0f} to {counted(round(last.x), 'worker')}, "
                f"an efficiency of {two_digits(100 * last.value.estimate * first.x / last.x)} %"
                for label, (first, *_, last) in ((label, points) for label, points in curve.lines.items() if len(points) > 1)
            ]
            yield f"{FIGURES[SPEED_UP][0]}{condition}: {'; '.join(efficiencies)}."
        if curve.over == "trials" and curve.metric != RATE:
            growths = []
            for label, points in curve.lines.items():
                if len(points) > 1 and curve.metric in (DRIVER, TREE):  # between the two largest numbers: without the start
                    first, last = points[-2:]
                    each = (last.value.estimate - first.value.estimate) / (last.x - first.x) * KILOBYTES
                    growths.append(f"{names[label]} {two_digits(each)} kB per further trial")
                elif len(points) > 1:
                    ends = [(curve_amount(curve, point.value.estimate), f"{point.x:.0f}") for point in (points[0], points[-1])]
                    (before, few), (after, many) = ends
                    growths.append(f"{names[label]} {before} in a job of {few} trials and {after} in one of {many}")
            yield f"{FIGURES[curve.metric][0]}{condition and ','}{condition}: {'; '.join(growths)}."


def x_text(curve: ScalingCurve, point: Point) -> str:
    """Return where a point stands: `1 s`, `4 workers`; `2 s of 200 epochs` where trials differ in them."""
    if curve.over == "release":
        return point.scope
    if curve.over == "copies":
        return counted(round(point.x), "job")
    if curve.over in ("cpus", "memory"):
        return f"{point.x:g} {LEVELS[curve.over][0]}"
    if curve.over != "trial_seconds":
        return counted(round(point.x), curve.over.removesuffix("s"))
    numbers = {round(other.epochs or 0) for points in curve.lines.values() for other in points}
    return duration_text(point.x) + (f" of {counted(round(point.epochs or 0), 'epoch')}" if len(numbers) > 1 else "")


def curve_amount(curve: ScalingCurve, value: float) -> str:
    """Return a value of a curve with two digits, over releases three, or as many as tell it from 100 %: `31 %`, `4.2 ms`."""
    if curve.metric in (UTILIZATION, FAIRNESS) and BUSY - 5 < value < 100:
        return f"{value:.1f} %"
    unit = FIGURES[curve.metric][1]
    return f"{figure(value) if curve.over == 'release' else two_digits(value)} {unit}" if unit else score(value)


def _together(specs: Specs, key: Callable[[RunSpec], Hashable]) -> list[Specs]:
    by_key: dict[Hashable, dict[Scope, RunSpec]] = {}
    for scope, spec in specs.items():
        by_key.setdefault(key(spec), {})[scope] = spec
    return list(by_key.values())


def _apart(over: Over, specs: Specs) -> list[Specs]:
    """Return the scopes that differ in their workers or trials alone; with the workers others may go along, trials before all."""
    asides = [(KEYS[over],), (KEYS["workers"], KEYS["trials"])]
    for aside in asides if over == "workers" else asides[:1]:
        parts = _together(specs, methodcaller("scope_key", *aside))
        if any(len(part) > 1 for part in parts) and all(_differ(over, part) for part in parts):
            return parts
    return [specs] if over == "workers" and _differ(over, specs) else []


def _differ(over: Over, specs: Specs) -> bool:
    return len({number_of(over, spec) for spec in specs.values()}) == len(specs)


def number_of(over: Over, spec: RunSpec) -> float:
    """Return the value of the key that is varied; infinite where it sets no limit."""
    value = attrgetter(KEYS[over])(spec.experiment)
    return math.inf if value is None else float(value)


def _curve(over: Over, metric: str, rows: Sequence[Row], specs: Specs) -> ScalingCurve:
    lines: dict[str, tuple[Point, ...]] = {}
    limits: dict[str, Limit] = {}
    for row in rows:
        columns = [row.columns[scope.text] for scope in specs if scope.text in row.columns]
        points = [point for column in columns if (point := _point(over, metric, column)) is not None]
        if points:
            ordered = sorted(points, key=lambda point: point.x)
            lines[row.label] = _predicted(ordered, row) if over == "trial_seconds" else tuple(ordered)
        by_seed: dict[int, dict[int, float]] = {}
        for group in (column.group for column in columns if metric == UTILIZATION):
            failed = {run.seed: 0.0 for run in group.runs if run.is_failure}  # a run that failed kept no worker busy
            for seed, share in {**failed, **group.estimate(UTILIZATION).by_seed}.items():
                by_seed.setdefault(seed, {})[round(number_of("workers", group.spec))] = share
        if by_seed:
            limits[row.label] = limit(list(by_seed.values()), row.first.group.confidence)
    first, spec = next(iter(specs.items()))
    seconds = [column.trial_seconds for row in rows if (column := row.columns.get(first.text)) and column.trial_seconds]
    length = f"trials of {duration_text(min(seconds))}" if seconds and min(seconds) >= SHORTEST else ""
    beside = first.task or length if over == "workers" else counted(spec.experiment.workers.count, "worker")
    scopes = tuple(scope.text for scope in specs)
    return ScalingCurve(over=over, metric=metric, beside=beside, lines=lines, limits=limits, scopes=scopes)


def _point(over: Over, metric: str, column: ScopeColumn) -> Point | None:
    if metric in (ADDED, UTILIZATION) and not _takes_time(column):
        return None
    if metric == ADDED:
        if column.added.per_whole_trial is None or column.trial_seconds is None:
            return None
        value = column.added.per_whole_trial.over(column.trial_seconds / 100)
    else:
        median = column.group.median(metric)
        if median is None or not math.isfinite(median.estimate):
            return None
        value = median.over(MILLISECONDS) if metric == JOB else median
    x = column.trial_seconds if over == "trial_seconds" else number_of(over, column.group.spec)
    if x is None or math.isinf(x):
        return None
    point = Point(scope=column.scope.text, x=x, value=value)
    return replace(point, epochs=column.added.epochs, reports=column.added.reports) if over == "trial_seconds" else point


def _with_speed_up(rows: Iterable[Row], parts: Sequence[Specs]) -> Iterator[Row]:
    """Yield the rows with the speed-up of each run, the job time of its seed with the row's fewest workers over its own, and the
    efficiency: that over how many times as many workers it has. `parts`: jobs that differ in nothing else."""
    for row in rows:
        columns = dict(row.columns)
        for part in parts:
            counts = {
                text: number_of("workers", columns[text].group.spec) for text in (scope.text for scope in part) if text in columns
            }
            fewest = min(counts, key=counts.__getitem__, default="")
            base = columns[fewest].group.median(JOB) if len(counts) > 1 else None
            if base is None or math.isinf(base.estimate):  # most of its runs failed: nothing to compare with
                continue
            alone = columns[fewest].group.estimate(JOB).by_seed
            for text, count in counts.items():
                group, times = columns[text].group, count / counts[fewest]
                speed = {seed: alone[seed] / seconds for seed, seconds in group.estimate(JOB).by_seed.items() if seed in alone}
                figures = {
                    seed: {SPEED_UP: metric_value(value, "x"), EFFICIENCY: metric_value(100 * value / times, "%")}
                    for seed, value in speed.items()
                }
                runs = tuple(run.with_metrics(figures.get(run.seed, {})) for run in group.runs)
                columns[text] = replace(columns[text], group=replace(group, runs=runs))
        yield replace(row, columns=columns)


def _takes_time(column: ScopeColumn) -> bool:
    return column.trial_seconds is not None and column.trial_seconds >= SHORTEST


def _predicted(points: Sequence[Point], row: Row) -> tuple[Point, ...]:
    """Return the points with what the first one predicts: longer trials have as many seconds added, and each report as many."""
    first, *longer = points
    each, number = row.columns[first.scope].added.per_report, first.reports
    predicted = [first]
    for point in longer:
        more = (point.reports or 0.0) - (number or 0.0)
        if round(more) and (each is None or number is None or number < MORE_REPORTS):
            predicted.append(point)
            continue
        seconds = first.value.estimate * first.x / 100 + (more * each.estimate if each is not None else 0.0)
        is_far = point.x > FURTHEST * first.x or (point.reports or 0.0) > FURTHEST * (number or 0.0)
        predicted.append(replace(point, predicted=100 * max(0.0, seconds) / point.x, is_extrapolated=is_far))
    return tuple(predicted)


def limit(by_seed: Sequence[Utilization], confidence: float) -> Limit:
    """Return the limit of a framework, by the seeds that were measured with the most workers: only they saw what `measured` says.

    `by_seed`: at least one, each with at least one number of workers.
    """
    most = max(max(utilization) for utilization in by_seed)
    seen = [utilization for utilization in by_seed if most in utilization]
    below, knees = [], []
    for utilization in seen:
        most_busy = max((count for count, share in utilization.items() if share >= BUSY), default=0)
        below.append(min((count for count in utilization if count > most_busy), default=math.inf))
        # Beyond the last but one number that did not fail it is infinite: one more is not a ceiling.
        counts = sorted(count for count, share in utilization.items() if share > 0)
        most_at_once = max((count * utilization[count] for count in counts), default=0.0)
        at_knee = most_at_once / utilization[counts[0]] if len(counts) > 2 else math.inf
        knees.append(at_knee if len(counts) > 2 and at_knee <= counts[-2] else math.inf)
    below.sort()
    knee = median(knees, confidence)
    return Limit(
        below=below[(len(below) - 1) // 2],
        low=below[0],
        high=below[-1],
        measured=most,
        knee=knee if math.isfinite(knee.estimate) else None,
    )
