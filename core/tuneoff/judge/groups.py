"""The runs of a results folder in groups, one adapter entry in one scope each, and the figures of a group."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.identity import canonical_json
from tuneoff.base.json_values import plain as as_json
from tuneoff.base.layout import TEST_RESULT
from tuneoff.experiment.accounting.declared import Prices
from tuneoff.experiment.names import strategy_text, variant_text
from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.variants import TASK
from tuneoff.judge.metrics import better, billed_share, bounds, default_unit, grid_step
from tuneoff.judge.results import Results, Run, Scope, run_of, value
from tuneoff.judge.stats.location import Interval, median, middle, wilson
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.record.metric_value import Kind, MetricValue
from tuneoff.record.run_record import RunRecord, TrialState

CONFIDENCE = 0.95  # of intervals where no plan says another


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A metric over some runs: all values, and how many runs failed, which count as worse than any value.

    `by_seed`, `present`: the values that are there; `numbers`: these, and what is worse than any for each failed run, nothing
    where there is no value; `middle`: their median, infinite where failures reach it. `reasons`: runs by why they have no value,
    `lacking`: those that are done.
    """

    unit: str
    values: Mapping[int, MetricValue]  # one per run, by seed
    by_seed: Mapping[int, float]
    present: Sequence[float]
    numbers: Sequence[float]
    middle: float | None
    kinds: frozenset[Kind]
    reasons: Mapping[str, int]
    lacking: Mapping[str, int]
    failed: int

    @property
    def is_estimated(self) -> bool:
        """Whether any value is estimated, not measured."""
        return "estimated" in self.kinds


@dataclass(kw_only=True, eq=False)
class Group:
    """The runs of one adapter entry in one scope, in the order of the plan's seeds.

    `entry` is what equal entries share: `serial` and `serial#2`. `twins`: the scopes whose runs stand for all of these.
    `copies`: of each seed all runs that shared the machine with its own, that too; none: it had the machine alone.
    `confidence`: of its intervals; `prices`: by which it is billed; `test_result`: a file that tells how many cases a test has.

    `records`: the executions that stand for its runs. `by_seed`: those that verdicts may rest on. Of its own runs: `unskipped`;
    `executed`, those that were started; `done`, the records of those that are, by seed.
    """

    label: str
    entry: str
    scope: Scope
    spec: RunSpec  # of one of the runs
    runs: tuple[Run, ...]
    twins: tuple[Scope, ...] = ()
    copies: Mapping[int, tuple[Run, ...]] = field(default_factory=dict)
    confidence: float = CONFIDENCE
    prices: Prices | None = None
    test_result: Path | None = None
    _estimates: dict[str, Estimate] = field(default_factory=dict, init=False, repr=False)
    _medians: dict[str, Interval | None] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.records = [run.record for run in self.runs if run.record is not None]
        self.by_seed = {run.seed: run for run in self.runs if run.will_run and not run.is_added}
        self.unskipped = [run for run in self.runs if not run.is_skipped]
        self.executed = [run for run in self.unskipped if run.record is not None]
        self.done = {run.seed: run.record for run in self.unskipped if run.record is not None and run.is_done}

    def estimate(self, metric: str) -> Estimate:
        """Return a metric over its runs."""
        if metric not in self._estimates:
            objective = self.spec.experiment.objective
            units = (recorded.unit for run in self.runs if (recorded := run.metric(metric)) is not None)
            worst = math.inf if better(metric, objective.metric, objective.mode) == "min" else -math.inf
            values = {run.seed: value(run, metric) for run in self.runs}
            by_seed = {seed: of.value for seed, of in values.items() if of.value is not None}
            reasons = {seed: of.reason_if_null for seed, of in values.items() if of.reason_if_null is not None}
            failed = sum(run.has_failed for run in self.runs)
            numbers = [*by_seed.values(), *[worst] * failed] if by_seed else []
            self._estimates[metric] = Estimate(
                unit=next(units, default_unit(metric, objective.metric)),
                values=values,
                by_seed=by_seed,
                present=list(by_seed.values()),
                numbers=numbers,
                middle=middle(numbers) if numbers else None,
                kinds=frozenset(values[seed].kind for seed in by_seed),
                reasons=Counter(reasons.values()),
                lacking=Counter(reasons[run.seed] for run in self.runs if run.is_done and run.seed in reasons),
                failed=failed,
            )
        return self._estimates[metric]

    def median(self, metric: str) -> Interval | None:
        """Return the median of a metric with its interval, cut off where the metric cannot be; None without a value.

        A time or a loss is not below 0, an accuracy between 0 and 1. Bounds that a value is beyond are none, as of percents.
        """
        if metric not in self._medians:
            numbers = self.estimate(metric).numbers
            self._medians[metric] = self._median(metric, numbers) if numbers else None
        return self._medians[metric]

    def _median(self, metric: str, numbers: Sequence[float]) -> Interval:
        lowest, highest = bounds(metric, self.spec.experiment.objective.metric)
        if not all(lowest <= number <= highest for number in numbers if math.isfinite(number)):
            lowest, highest = -math.inf, math.inf
        step = self.grid_step
        if metric != "quality.test":  # the largest step in USD between two costs; 0 where no time is rounded up
            costs = [(run, cost) for run in self.runs if (cost := run.number(metric)) is not None]
            step = max((cost * billed_share(run, metric, self.prices) for run, cost in costs), default=0.0)
        interval = median(numbers, self.confidence, grid_step=step)
        low = interval.low if interval.n == 1 else min(interval.estimate, max(interval.low, lowest))
        is_open = interval.n == 1 or math.isinf(interval.high)
        high = interval.high if is_open else max(interval.estimate, min(interval.high, highest))
        return replace(interval, low=low, high=high)

    @cached_property
    def grid_step(self) -> float:
        """1 / the number of cases of the test, 0 where the objective is not an accuracy or nothing tells."""
        return grid_step(self.test_result) if "accuracy" in self.spec.experiment.objective.metric else 0.0

    @cached_property
    def success(self) -> Interval | None:
        """The share of the tried runs that are done, by Wilson; None: none was tried."""
        tried = sum(run.has_ended for run in self.unskipped)
        return wilson(len(self.done), tried, self.confidence) if tried else None

    @cached_property
    def conditions(self) -> Conditions:
        """How its runs ran."""
        adapters = [_part(record, "adapter") for record in self.records]
        changed = (adapter.get("changed_defaults") for adapter in adapters)
        return Conditions(
            cpu_limits=tuple(dict.fromkeys(filter(None, map(cpu_limit, self.records)))),
            changed_defaults=tuple(dict.fromkeys(str(text) for texts in changed if isinstance(texts, list) for text in texts)),
            process_per_trial=any(adapter.get("long_lived_workers") is False for adapter in adapters),
            reports=tuple(dict.fromkeys(of for adapter in adapters if isinstance(of := adapter.get("reports"), str))),
        )

    @cached_property
    def counts(self) -> Counter[TrialState]:
        """The trials that started in its own runs, done or not, by their state."""
        records = (run.record for run in self.executed if run.record is not None)
        return Counter(trial.state for record in records for trial in record.trials if trial.used_ticket)

    def recorded(self, *families: str) -> tuple[str, ...]:
        """Return the metrics of these families (`phase.`) that any of its runs has."""
        return tuple(dict.fromkeys(name for record in self.records for name in record.metrics if name.startswith(families)))

    @property
    def clock_uncertainty(self) -> float:
        """By how much the clocks of its runs' hosts may differ, in ms."""
        return max((record.clock_uncertainty_ns / 1e6 for record in self.done.values()), default=0.0)

    @cached_property
    def flags(self) -> Counter[str]:
        """Its own runs by the name of a flag that they have."""
        return Counter(flag for run in self.unskipped for flag in run.flags)

    @cached_property
    def excluded(self) -> str:
        """The flag that keeps it out of every comparison; "" without one."""
        return next((flag.name for record in self.records for flag in record.flags if flag.name in EXCLUDING), "")

    @property
    def adapter(self) -> str:
        return self.spec.adapter

    @property
    def variant(self) -> str:
        """What `matrix:` and `tasks:` set in its runs."""
        return variant_text(self.spec.experiment.variant)

    @property
    def start(self) -> object:
        """How its workers start, as its option says: forked from a server; None: each a fresh interpreter."""
        return self.spec.options.get("start")

    @property
    def replicate(self) -> int:
        """Above 0: the same entry again, for the noise floor."""
        return self.spec.replicate

    @property
    def same_as(self) -> str | None:
        """The scope whose runs stand for all of these; None where they have their own."""
        return " and ".join(sorted({scope.text for scope in self.twins})) or None

    @property
    def same_sampler(self) -> str:
        """The sampler whose runs stand for all of these; "" where they have their own."""
        return " and ".join(dict.fromkeys(scope.sampler for scope in self.twins))

    @property
    def not_done(self) -> Mapping[int, str]:
        """How its own runs that are not done ended, by seed; "planned": not run yet."""
        return {run.seed: run.status for run in self.unskipped if not run.is_done}

    @property
    def failed(self) -> int:
        """How many of its own runs failed or timed out."""
        return sum(run.has_failed for run in self.unskipped)

    @property
    def is_compared(self) -> bool:
        """Whether it is in verdicts at all: no flag keeps it out, and something runs or stands for it."""
        return not self.excluded and any(run.will_run for run in self.runs)


def grouped(results: Results, confidence: float = CONFIDENCE) -> list[Group]:
    """Return the groups of a folder, scope by scope, each in the plan's order; warm-ups are in none.

    `confidence`: of the intervals of their figures.
    """
    texts = results.plan.label_texts
    scopes: dict[str, Scope] = {}
    scope_of: dict[str, Scope] = {}  # by run id
    planned: dict[Scope, dict[str, list[PlannedRun]]] = {}
    for run in results.planned:
        key = run.spec.scope_key()
        if key not in scopes:
            experiment = run.spec.experiment
            variant = variant_text({name: value for name, value in experiment.variant.items() if name != TASK})
            task = named if isinstance(named := experiment.variant.get(TASK), str) else ""
            plain = text = " ".join(part for part in (strategy_text(experiment), variant, task) if part)
            number = 1
            while text in {scope.text for scope in scopes.values()}:  # options that are in no variant text
                number += 1
                text = f"{plain} ({number})"
            sampler, pruner = experiment.sampler.name, experiment.pruner.name
            scopes[key] = Scope(sampler=sampler, pruner=pruner, variant=variant, task=task, text=text)
        scope_of[run.run_id] = scopes[key]
        planned.setdefault(scopes[key], {}).setdefault(run.label, []).append(run)
    groups = []
    for scope, by_label in planned.items():
        for label, of_label in by_label.items():
            spec = of_label[0].spec
            stands = partial(
                run_of,
                selected=results.selected,
                without_record=results.without_record,
                added_seeds=results.plan.added_seeds,
            )
            runs = tuple(map(stands, of_label))
            done = next((run.record for run in runs if run.record is not None and run.is_done), None)
            options = {name: value for name, value in spec.options.items() if name not in spec.local_options}
            twins = [run.same_as for run in of_label if run.same_as is not None]
            group = Group(
                label=texts[label],
                entry=canonical_json([spec.adapter, spec.platform, options, as_json(spec.environment)]),
                scope=scope,
                spec=spec,
                runs=runs,
                twins=tuple(dict.fromkeys(scope_of[twin] for twin in twins if twin in scope_of))
                if len(twins) == len(of_label)
                else (),
                copies={run.spec.seed: tuple(map(stands, results.copies[run.run_id])) for run in of_label}
                if spec.experiment.copies > 1
                else {},
                confidence=confidence,
                prices=results.plan.accounting.prices,
                test_result=results.folder / results.run_folder(done) / TEST_RESULT if done is not None else None,
            )
            groups.append(group)
    return groups


def by_scope(groups: Iterable[Group]) -> dict[Scope, list[Group]]:
    """Return groups by their scope, both in the order given."""
    scopes: dict[Scope, list[Group]] = {}
    for group in groups:
        scopes.setdefault(group.scope, []).append(group)
    return scopes


def noise_pairs(groups: Iterable[Group]) -> list[tuple[Group, Group]]:
    """Return (an entry again, its first) of a scope's groups: A/A, whose difference is chance."""
    compared = [group for group in groups if group.is_compared]
    firsts = {group.entry: group for group in compared if group.spec.replicate == 0}
    return [(group, firsts[group.entry]) for group in compared if group.spec.replicate and group.entry in firsts]


def in_plan_order(results: Results) -> list[Group]:
    """Return the groups of a folder in the order of the plan, as tables have them."""
    order = {run.run_id: position for position, run in enumerate(results.planned)}
    return sorted(grouped(results), key=lambda group: order[group.runs[0].run_id])


def job_time_and_best(runs: Sequence[Run]) -> tuple[float | None, float | None]:
    """Return the median job time in s, infinite where most or all runs failed, and the best validation value; None: none yet."""
    unskipped = [run for run in runs if not run.is_skipped]
    if not unskipped:
        return None, None
    times, scores = (
        [of.value for run in unskipped if (of := value(run, metric)).value is not None]
        for metric in ("time.jct_without_test", "quality.validation")
    )
    best = max if unskipped[0].spec.experiment.objective.mode == "max" else min
    failed = [math.inf for run in unskipped if run.has_failed]
    time = middle([*times, *failed]) if times or failed else None
    return time and time / MILLISECONDS, best(scores, default=None)


def log_billing_step(groups: Iterable[Group], metric: str) -> float:
    """Return twice what half a step less is on the logarithm of the shortest run's cost, where it is the greatest."""
    share = max((billed_share(run, metric, group.prices) for group in groups for run in group.runs), default=0.0)
    return -2 * math.log1p(-share / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How an adapter's runs ran, as their records have it; of each more than one only if runs differ."""

    cpu_limits: tuple[str, ...]  # of each slot
    changed_defaults: tuple[str, ...]
    process_per_trial: bool
    reports: tuple[str, ...]  # of which epochs it is told


def cpu_limit(record: RunRecord) -> str | None:
    """Return what limited the processors of a run's slots; None: its command was killed before it could be noted."""
    limits = _part(record, "limits")
    text, quota = limits.get("cpus"), limits.get("cpu_quota")
    if text is None:
        return None
    return f"quota of {quota:g} processors ({text})" if isinstance(quota, int | float) else str(text)


def _part(record: RunRecord, name: str) -> Mapping[str, Any]:
    part = record.environment.get(name)
    return part if isinstance(part, Mapping) else {}
