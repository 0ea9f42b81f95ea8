"""What an answer is made of. Terminal, page, JSON, diff and recommender read these, and compute nothing.

A *question* is one declared primary metric with its margin. A *scope* is what compared runs share: sampler, pruner, variant and,
in a file with `tasks:`, the task. A *group* is one adapter in one scope. A *verdict* is of a pair of groups on a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tuneoff.metrics.values import Kind
from tuneoff.stats.interval import Interval

Scale = Literal["difference", "ratio"]  # one − other in the metric's unit, or ln(one / other)


class Outcome(StrEnum):
    """What is claimed of a pair. Undecided is not equivalent; not judged: there were too few seeds to claim anything."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    EQUIVALENT_THOUGH_DIFFERENT = "equivalent though different"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One primary metric. `margin`: the smallest difference that matters, on the scale (ln(1.05) for 5 %)."""

    name: str  # quality, time, overhead, energy, cost
    metric: str
    unit: str
    better: Literal["min", "max"]
    scale: Scale
    margin: float | None
    margin_text: str  # "5 %", "0.01 (of workload 'mnist_mlp')", or why there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What compared runs share. `text` names it in tables: `random`, `tpe + asha digits-300-small`."""

    sampler: str
    pruner: str
    variant: str
    task: str  # "": the file has no tasks
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRef:
    """A planned run of a group, and the execution that stands for it."""

    seed: int
    run_id: str
    execution_id: str | None  # None: never started
    status: str  # done, failed, timeout, interrupted, skipped, planned
    reason: str | None = None
    is_continued: bool = False  # its whole has no time, energy or cost
    flags: tuple[str, ...] = ()

    @property
    def is_failure(self) -> bool:
        """Whether it counts as worse than any success: it was tried, and came to nothing."""
        return self.status in ("failed", "timeout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A metric of a run; None with the reason. A failed run has no value and is, in comparisons, worse than any."""

    seed: int
    value: float | None
    kind: Kind | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A metric over the seeds of a group: median and IQM with intervals where there are enough seeds, and all values."""

    metric: str
    unit: str
    values: tuple[Value, ...]
    median: Interval | None
    iqm: Interval | None
    kinds: frozenset[Kind] = frozenset()
    reasons: Mapping[str, int] = field(default_factory=dict)  # runs by why they have no value


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One adapter in one scope. `success`: the share of tried runs that are done, by Wilson; None: none was tried."""

    label: str
    adapter: str
    scope: Scope
    emulated: bool
    replicate: int  # above 0: the same entry again, for the noise floor
    runs: tuple[RunRef, ...]
    success: Interval | None
    estimates: Mapping[str, Estimate]  # by metric: those of the questions and those of the table
    same_as: str | None = None  # of a skipped group: whose result stands for it


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """One − other of a seed on the question's scale; ±inf where exactly one run failed, None where nothing can be compared."""

    seed: int
    one: float | None
    other: float | None
    difference: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The verdict under another reasonable choice, e.g. "without failures", "IQM", "without seed 3", "energy weights low"."""

    choice: str
    outcome: Outcome
    interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is claimed of `one` against `other` (labels) on a question in a scope, and all that it rests on.

    `interval` is of one − other on the question's scale, at the family's confidence. `noise_floor`: that of an A/A pair in
    the same scope and question; None: the file names no entry twice. `is_robust`: every sensitivity has the same outcome.
    `seeds_to_decide`: about how many seeds a *new* experiment would need; None: decided, or nothing tells the number.
    `is_estimated`: values are by a model, which no sentence about them may leave out.
    """

    question: Question
    scope: Scope
    one: str
    other: str
    outcome: Outcome
    reason: str  # in words: why this outcome; for `not judged` and `undecided` what is missing
    interval: Interval | None
    differences: tuple[PairedDifference, ...]
    failures: tuple[int, int] = (0, 0)
    noise_floor: Interval | None = None
    sensitivities: tuple[Sensitivity, ...] = ()
    is_robust: bool = False
    seeds_to_decide: int | None = None
    is_noise: bool = False  # an A/A pair: in no family
    is_estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossTasks:
    """One question over the tasks of a file, for one sampler and pruner. `texts`: what there are too few tasks for."""

    question: Question
    scope: Scope  # its `task` is ""
    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    iqm_regret: Mapping[str, Interval]  # by label; stratified bootstrap over tasks
    improvement: Mapping[tuple[str, str], Interval]  # P(one better than other), ties half
    wilcoxon: Mapping[tuple[str, str], float]  # p on task medians, times the family's size
    ranks: Mapping[str, float]
    critical_difference: float | None  # None below 10 tasks
    texts: tuple[str, ...] = ()
    tasks_of: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)  # in which both of a pair have values


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One thing that the summary says. `question`: its heading, "" for what is of none; `where`: the scope, and the seeds."""

    question: str
    where: str
    text: str

    @property
    def sentence(self) -> str:
        """The claim by itself, with its scope."""
        head = ", ".join(part for part in (self.question, self.where) if part)
        return f"{head}: {self.text}" if head else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All answers of a results folder. `summary`: the verdicts in words, most important first; no ranking without one.

    `claims`: the same in parts, for a page that groups them.
    """

    name: str
    questions: tuple[Question, ...]
    scopes: tuple[Scope, ...]
    groups: tuple[Group, ...]
    verdicts: tuple[Verdict, ...]
    across: tuple[AcrossTasks, ...]
    summary: tuple[str, ...]
    limits: tuple[str, ...]  # what cannot be concluded, and why
    statuses: Mapping[str, int]  # of all planned runs; the denominator is the plan
    family_size: int
    confidence: float
    looks: tuple[int, ...]
    analysis: Mapping[str, Any]  # as frozen
    exploratory: tuple[str, ...] = ()  # what was asked for later than the plan, e.g. by an option of the command
    claims: tuple[Claim, ...] = ()
