"""Summarize runs per adapter, sampler and variant: the medians over the seeds, and what the trials and runs came to.

A run that failed counts as worse than any that is done, in every table alike.

The lines under a table: the meaning of its figures, skips with reasons, runs that are not done, flags.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.base.clock import MILLISECONDS
from tuneoff.base.commands import command
from tuneoff.base.format import counted, listed, number
from tuneoff.experiment.names import variant_text, with_pruner
from tuneoff.judge.answers.run_values import better, value
from tuneoff.judge.conditions import NO_CONDITIONS, Conditions, condition_lines, conditions
from tuneoff.judge.results import Results
from tuneoff.judge.runs import Group, Run, grouped
from tuneoff.judge.stats.location import middle
from tuneoff.measure.spans import PARTS
from tuneoff.record.flag_meanings import marked
from tuneoff.record.metric_value import Kind
from tuneoff.record.run_record import RunStatus

COLUMNS = (  # of the table of figures, the most important first
    *("quality.test", "time.jct_without_test", "overhead.per_trial"),
    *("energy.per_completed_trial_without_test", "cost.job_without_test"),
    *("quality.validation", "time.jct", "energy.per_completed_trial", "cost.job"),
    *("slots.idle_share", "energy.trial", "carbon.job_without_test", "carbon.job", "energy.idle_share"),
    *(f"waste.default.{name}" for name in ("time", "energy", "cost")),
    *("energy.cpu_seconds", "energy.reserved_core_seconds"),
    *(f"time.{part}" for part in PARTS if part != "metric_collection"),
)
FIGURES = (
    *COLUMNS,
    "pruning.saved_epochs",
    "pruning.saved_time",
    "pruning.saved_energy",
)
MEDIANS = "Medians over seeds, in which a failed run is worse than any; below them lowest–highest of the runs that are done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One metric over the runs of a group. `numbers`: its values, and ±inf, worse than any, for each run that failed."""

    numbers: Sequence[float] = ()
    unit: str = ""
    kinds: frozenset[Kind] = frozenset()  # of the values that are there
    reasons: Mapping[str, int] = field(default_factory=dict)  # runs by why they have no value

    @property
    def known(self) -> list[float]:
        """The values."""
        return [number for number in self.numbers if math.isfinite(number)]

    @property
    def failed(self) -> int:
        return len(self.numbers) - len(self.known)

    @property
    def median(self) -> float | None:
        """The median of all numbers; None without a value, infinite where failures reach it."""
        return middle(self.numbers) if self.numbers else None

    @property
    def is_estimated(self) -> bool:
        return "estimated" in self.kinds


def with_failures(values: Sequence[float], failed: int, direction: str) -> list[float]:
    """Return values and, for each run that failed, what is worse than any; nothing where there is no value."""
    return [*values, *[math.inf if direction == "min" else -math.inf] * failed] if values else []


def came_to(runs: Sequence[Run]) -> tuple[float | None, float | None]:
    """Return the median job time in s, infinite where most or all runs failed, and the best validation value; None: none yet."""
    time, values = figure(runs, "time.jct_without_test").median, figure(runs, "quality.validation").known
    best = max if runs[0].spec.experiment.objective.mode == "max" else min
    if time is None:
        return math.inf if failures(runs) else None, best(values, default=None)
    return time / MILLISECONDS, best(values, default=None)


def figure(runs: Sequence[Run], metric: str) -> Figure:
    """Return a metric over runs of one objective, those that are skipped left out."""
    objective = runs[0].spec.experiment.objective
    direction = better(metric, objective.metric, objective.mode)
    own = [run for run in runs if not run.is_skipped]
    done = [value(run, metric) for run in own if run.is_done]
    known = [one.value for one in done if one.value is not None]
    units = (found.unit for run in own if run.is_done and (found := run.metric(metric)) is not None)
    return Figure(
        numbers=with_failures(known, failures(own), direction),
        unit=next(units, ""),
        kinds=frozenset(one.kind for one in done if one.kind is not None),
        reasons=dict(Counter(one.reason for one in done if one.reason is not None)),
    )


def failures(runs: Iterable[Run]) -> int:
    """Return how many of some runs failed or timed out."""
    return sum(run.has_failed for run in runs)


@dataclass(frozen=True, slots=True)
class Incident:
    """Why runs of a row were skipped or are not done, and the seeds of these runs."""

    seeds: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRow:
    """One adapter with one sampler, pruner and variant. Times in ms; None without a run that is done."""

    label: str
    platform: str
    sampler: str
    pruner: str
    variant: str = ""
    clock_uncertainty: float = 0.0
    trials_completed: int = 0  # over all executed runs, done or not
    trials_failed: int = 0  # failed or timed out
    trials_cancelled: int = 0  # the budget of time or epochs ended them, or whoever ended the run
    trials_pruned: int = 0
    runs_planned: int = 0
    runs_failed: int = 0  # failed or timed out: each counts in the medians as worse than any
    statuses: Mapping[RunStatus, int] = field(default_factory=dict)  # of the executed runs
    flags: Mapping[str, int] = field(default_factory=dict)  # executed runs by the name of a flag that they have
    same_as: str | None = None  # the sampler whose runs stand for all runs of this row
    emulated: bool = False  # something stood in for the platform, planned or found: the row is in no ranking
    skips: tuple[Incident, ...] = ()
    not_done: tuple[Incident, ...] = ()  # "failed: why"
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by metric, see FIGURES
    conditions: Conditions = NO_CONDITIONS  # of the executed runs

    @property
    def runs_executed(self) -> int:
        return sum(self.statuses.values())

    @property
    def runs_done(self) -> int:
        return self.statuses.get("done", 0)


def summary_rows(results: Results) -> list[SummaryRow]:
    """Return one row per label, platform, sampler, pruner and variant, in the order of the plan.

    Of several executions of a run the latest that is done counts, else the latest. Warm-up runs are left out. The order of
    the records changes nothing.
    """
    places = {run.run_id: place for place, run in enumerate(results.planned)}
    return [summary_row(group) for group in sorted(grouped(results), key=lambda one: places[one.runs[0].run_id])]


def summary_row(group: Group) -> SummaryRow:
    """Return the row of a group."""
    spec, runs = group.spec, group.own
    executed = [run.record for run in runs if run.record is not None]
    done = [record for record in executed if record.status == "done"]
    failed = failures(runs)
    twins = {scope.sampler for scope in group.twins}

    def count(*states: str) -> int:
        return sum(trial.state in states and trial.used_ticket for record in executed for trial in record.trials)

    return SummaryRow(
        label=group.label,
        platform=spec.platform,
        sampler=spec.experiment.sampler.name,
        pruner=spec.experiment.pruner.name,
        variant=variant_text(spec.experiment.variant),
        clock_uncertainty=max((record.clock_uncertainty_ns / 1e6 for record in done), default=0.0),
        trials_completed=count("completed"),
        trials_failed=count("failed", "timed_out"),
        trials_cancelled=count("cancelled"),
        trials_pruned=count("pruned"),
        runs_planned=len(group.runs),
        runs_failed=failed,
        statuses=Counter(record.status for record in executed),
        flags=Counter(name for run in runs for name in run.flags),
        same_as=twins.pop() if len(twins) == 1 else None,
        emulated=group.emulated,
        skips=_incidents((run, run.reason) for run in group.runs if run.is_skipped),
        not_done=_incidents((run, _why(run)) for run in runs if run.status not in ("done", "running", "planned")),
        figures={name: figure(group.runs, name) for name in FIGURES},
        conditions=conditions(executed),
    )


def _why(run: Run) -> str:
    """Return how a run ended, and why."""
    reason = run.reason
    return f"{run.status}: {reason}" if reason not in (None, run.status) else run.status


def _incidents(found: Iterable[tuple[Run, str | None]]) -> tuple[Incident, ...]:
    seeds: dict[str, set[int]] = {}
    for run, text in found:
        seeds.setdefault(text or "", set()).add(run.seed)
    return tuple(Incident(tuple(sorted(of)), text) for text, of in sorted(seeds.items()))


def notes(rows: Sequence[SummaryRow]) -> list[str]:
    """Return what the table cannot hold."""
    lines = _emulated(rows)
    if any(row.runs_done > 1 or row.runs_failed for row in rows):
        lines.append(MEDIANS)
    if any(row.runs_done for row in rows):
        lines += [
            "JCT w/o test: JCT less the test of the best model, which is tuneoff's own fresh process, the same for all.",
            "Both also hold the collection of metrics: tuneoff's own work, without a column.",
        ]
    uncertainty = max((row.clock_uncertainty for row in rows), default=0.0)
    if uncertainty:
        lines.append(f"Clocks of the hosts agree within {number(uncertainty)} ms.")
    lines += condition_lines((row.label, row.conditions) for row in rows)
    lines += _same(rows)
    for row in rows:
        if row.same_as is None:
            lines += [f"{row_name(row)} {_seeds(skip.seeds)}: skipped: {skip.text}" for skip in row.skips]
        lines += [f"{row_name(row)} {_seeds(end.seeds)}: {end.text}" for end in row.not_done]
        if row.trials_cancelled:
            lines.append(f"{row_name(row)}: {counted(row.trials_cancelled, 'trial')} cancelled")
    return lines + _flags(rows)


def _emulated(rows: Sequence[SummaryRow]) -> list[str]:
    found = [row.label for row in rows if row.emulated]
    if not found:
        return []
    means = "a local stand-in for the platform; its figures are not the framework's, and are in no ranking or comparison"
    return [f"{listed(found)} {'is' if len(set(found)) == 1 else 'are'} emulated: {means}."]


def _same(rows: Sequence[SummaryRow]) -> list[str]:
    """Return one line per pair of samplers that are the same for some adapters."""
    pairs: dict[tuple[str, str], list[SummaryRow]] = {}
    for row in rows:
        if row.same_as is not None:
            pairs.setdefault((row.sampler, row.same_as), []).append(row)
    return [
        f"{sampler} is {same_as} for {listed(row.label for row in found)}: "
        f"{counted(sum(row.runs_planned for row in found), 'run')} not repeated"
        for (sampler, same_as), found in pairs.items()
    ]


def _flags(rows: Sequence[SummaryRow]) -> list[str]:
    executed = sum(row.runs_executed for row in rows)
    lines = []
    for mark in marked(name for row in rows for name in sorted(row.flags)):
        name = mark.removeprefix("! ")
        found = [row for row in rows if row.flags.get(name)]
        total = sum(row.flags[name] for row in found)
        frameworks = [_flagged(label, name, rows) for label in dict.fromkeys(row.label for row in found)]
        lines.append(f"{mark}: {total} of {counted(executed, 'run')}: {', '.join(frameworks)}")
    if not lines:
        return []
    first = lines[0].removeprefix("! ").partition(":")[0]
    return ["Flags (serious: !):", *(f"  {line}" for line in lines), f"What one means: {command('explain', first)}"]


def _flagged(label: str, name: str, rows: Sequence[SummaryRow]) -> str:
    """Return an adapter with its runs of that flag, and its samplers where not all of them have it: `syne-tune tpe 3`."""
    own = [row for row in rows if row.label == label and row.runs_executed]
    found = [row for row in own if row.flags.get(name)]
    samplers = list(dict.fromkeys(row.sampler for row in found))
    which = f" {'/'.join(samplers)}" if set(samplers) != {row.sampler for row in own} else ""
    return f"{label}{which} {sum(row.flags[name] for row in found)}"


def row_name(row: SummaryRow) -> str:
    """Return what tells a row from the others, as lines below the table write it."""
    return f"{row.label} {with_pruner(row.sampler, row.pruner)}" + (f" {row.variant}" if row.variant else "")


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
