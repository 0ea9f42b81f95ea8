"""What the first screen says: who is chosen, how sure that is, what weakens it, and the figures that it rests on.

A *setting* is one sampler and pruner. Its *columns* are the scopes that share it: one, or one per task or variant of the file.
A *row* is a framework in a setting, or the plain process pool, which is the floor and never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from tuneoff.base.format import counted, times_text, two_digits
from tuneoff.experiment.names import with_pruner
from tuneoff.judge.answers.answer import Answers, Outcome, Verdict
from tuneoff.judge.choice.added import Added
from tuneoff.judge.groups import Group
from tuneoff.judge.results import Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.judge.warnings import ResultsWarning
from tuneoff.workload import Mode

Over = Literal["trial_seconds", "workers", "trials", "cpus", "memory", "copies", "release"]
QUALITY, VALIDATED = "quality.test", "quality.validation"
ENERGY = "energy.per_completed_trial_without_test"


class Certainty(StrEnum):
    """How sure a choice is. Described: with too few seeds for any verdict; then nobody is chosen."""

    SHOWN = "shown"
    NOT_DECIDED = "not decided"
    DESCRIBED = "described"
    NOTHING = "nothing measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Job time of a row over another one's in one column, by seed. `low` to `high`: the interval of the verdict, at its
    confidence, where `is_interval`; else the lowest and the highest seed.

    `difference_s`: the median difference in seconds. `outcome`: of this row against the other, on time.
    """

    estimate: float
    low: float
    high: float
    is_interval: bool
    difference_s: float
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeColumn:
    """A row in one scope: its estimates and runs, what it adds, and its job time over that of each other row (by label)."""

    scope: Scope
    group: Group
    added: Added
    ratios: Mapping[str, Ratio]
    trial_seconds: float | None  # median of a trial's training, over its runs
    job_seconds: float | None  # median job time; None also where most runs failed


def failures(columns: Iterable[ScopeColumn]) -> tuple[int, int]:
    """Return how many runs failed, of those that came to an end: done or failed."""
    runs = [run for column in columns for run in column.group.runs if run.status == "done" or run.is_failure]
    return sum(run.is_failure for run in runs), len(runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A framework in a setting. `name`: as its authors write it ("Ray Tune"); `columns`: by the text of their scope."""

    label: str
    name: str
    is_floor: bool
    excluded: str  # see Group
    columns: Mapping[str, ScopeColumn]

    @property
    def marked(self) -> str:
        """The name, with what it must never be read without."""
        return f"{self.name} ({self.excluded})" if self.excluded else self.name

    @property
    def is_candidate(self) -> bool:
        """Whether it is a framework that no flag keeps out of comparisons."""
        return not self.is_floor and not self.excluded

    @property
    def has_done(self) -> bool:
        """Whether a run of it is done; else nothing was measured that could be compared."""
        return any(run.status == "done" for column in self.columns.values() for run in column.group.runs)

    @property
    def first(self) -> ScopeColumn:
        """Its first column: the only one where the file has no tasks and varies nothing else."""
        return next(iter(self.columns.values()))


def declared_seeds(rows: Iterable[Row]) -> int:
    """Return how many declared seeds have a run that is done, in the column that has fewest but not none."""
    groups = [column.group for row in rows for column in row.columns.values()]
    done = [sum(run.status == "done" and not run.is_added for run in group.runs) for group in groups]
    return min(filter(None, done), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A figure of the column `scope`, which is a release over these. `x`: the length of its trials in s, its number of workers,
    trials or jobs at the same time, the vCPU or MB of a worker, or its position among the releases.

    `epochs`, `reports`: of a trial. `predicted`: the same from what is added to the shortest trials and to their reports; None
    for those, where `x` is not a length, and for more `reports` than the one of the shortest trials, whose part nothing tells.
    """

    scope: str
    x: float
    value: Interval
    epochs: float | None = None
    reports: float | None = None
    predicted: float | None = None
    is_extrapolated: bool = False  # the prediction: to over ten times the length or the reports that it rests on


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """From how many workers on utilization is below BUSY: in the middle of the seeds, in the lowest and the highest of them.

    Each is a number that was measured, with all greater ones below BUSY too; infinite: up to the most, `measured`, it is not.
    `knee`: its median over the seeds; None where the ceiling was not seen.
    """

    below: float
    low: float
    high: float
    measured: int
    knee: Interval | None

    @property
    def text(self) -> str:
        """Return `from 16 on (8 to 16 by seed; knee 9.1, 8.0 to 10)`, `not up to 64`."""
        beside = [f"{_count(self.low)} to {_count(self.high)} by seed"] if self.low != self.high else []
        if self.knee is not None:
            ends = (self.knee.low, self.knee.high)
            knee_range = f", {two_digits(ends[0])} to {two_digits(ends[1])}" if all(map(math.isfinite, ends)) else ""
            beside.append(f"knee {two_digits(self.knee.estimate)}{knee_range}")
        where = f"not up to {self.measured}" if math.isinf(self.below) else f"from {counted(round(self.below), 'worker')} on"
        return where + (f" ({'; '.join(beside)})" if beside else "")


def _count(workers: float) -> str:
    return "none" if math.isinf(workers) else f"{workers:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStep:
    """A release of a framework against the one before it. `also`: what else differs between their environments."""

    older: str
    newer: str
    verdict: Verdict  # of the newer one against the older
    also: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingCurve:
    """Points by label, over releases by framework, in the order of x. `beside`: what they share, in words; "" for nothing.

    `metric`: what they are values of, in its unit; overhead.further_trial with the reports of a trial, in % of it. `limits`: of
    utilization over workers. `enough`: over the vCPU or memory of a worker, from where on a job takes as long as with most, in
    words. `smallest_step`: what is shown in 90 %, on the scale of the steps' question.
    """

    over: Over
    metric: str
    beside: str
    lines: Mapping[str, tuple[Point, ...]]
    limits: Mapping[str, Limit]
    scopes: tuple[str, ...] = ()  # that it is over, also those without a point; not over releases
    enough: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[ReleaseStep, ...] = ()  # over releases
    smallest_step: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTable:
    """From which length of a trial, an epoch and a job on each framework adds little: texts, a row per framework."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One sampler and pruner: the choice there, in words, and its rows, best job time first.

    `lines`: the headline and a few sentences below it. `reference`: the row that ratios are told against at first.
    `lengths`: None where nothing tells them.
    `curves`: over what the matrix varies; none where that is nothing of `Over`.
    """

    sampler: str
    pruner: str
    scopes: tuple[Scope, ...]
    rows: tuple[Row, ...]
    chosen: tuple[str, ...]  # labels
    certainty: Certainty
    reference: str | None
    lines: tuple[str, ...]
    lengths: LengthTable | None
    curves: tuple[ScalingCurve, ...]

    @property
    def has_intervals(self) -> bool:
        """Whether ranges of ratios are the intervals of verdicts; else they are from the lowest to the highest seed."""
        columns = (column for row in self.rows for column in row.columns.values())
        return any(ratio.is_interval for column in columns for ratio in column.ratios.values())

    @property
    def reference_name(self) -> str:
        """The name of the row that is the reference; "" without one."""
        return next((row.name for row in self.rows if row.label == self.reference), "")

    @property
    def name(self) -> str:
        """The sampler and, where there is one, the pruner."""
        return with_pruner(self.sampler, self.pruner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """The one command that would decide, and about how long it takes in s; None where nothing tells it."""

    command: str
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestConfiguration:
    """The best validated configuration of all runs, and who found it."""

    label: str
    run_id: str
    value: float
    metric: str
    mode: Mode
    configuration: Mapping[str, object]

    @property
    def arrow(self) -> str:
        """In which direction a score is better."""
        return "↓" if self.mode == "min" else "↑"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is chosen by the answers. `settings`: the main one first. `warnings`: what weakens it, the gravest first.

    `report_command`: shows all of it. `filters`: what was asked for, and who is left out; `refusal`: why nobody is left.
    """

    answers: Answers
    name: str
    settings: tuple[Setting, ...]
    warnings: tuple[ResultsWarning, ...]
    deciding: Deciding | None
    best: BestConfiguration | None
    report_command: str
    filters: tuple[str, ...] = ()
    refusal: str = ""

    @property
    def quality(self) -> str:
        """The metric of the column on quality: the test's where any row has it, else validation's."""
        groups = [column.group for setting in self.settings for row in setting.rows for column in row.columns.values()]
        return QUALITY if any(group.estimate(QUALITY).present for group in groups) else VALIDATED

    @property
    def short_warnings(self) -> tuple[str, ...]:
        """What could change the choice, with the way out."""
        return tuple(warning.text for warning in self.warnings if warning.short)

    @property
    def lines(self) -> tuple[str, ...]:
        """The headline and the sentences below it, of the main setting."""
        return self.settings[0].lines if self.settings else (self.refusal or "Nothing is measured yet.",)

    @property
    def lengths(self) -> LengthTable | None:
        """From which lengths on frameworks add little, of the main setting."""
        return self.settings[0].lengths if self.settings else None


def ratio_text(ratio: Ratio) -> str:
    """Return `2.9x (1.5 to 4.8)`; without its range where that is of one seed."""
    return times_text(ratio.estimate, ratio.low, ratio.high)
