"""What an answer is made of. Terminal, page, JSON, diff and recommender read these, and compute nothing.

A *question* is one declared primary metric with its margin. A *scope* is what compared runs share: sampler, pruner, variant and,
in a file with `tasks:`, the task. A *group* is one adapter in one scope. A *verdict* is of a pair of groups on a question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from tuneoff.experiment.metric_catalogue import Scale
from tuneoff.judge.groups import Group
from tuneoff.judge.results import Disturbance, Results, Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.measure.power.cpu_table import WeightRange

WITHOUT_FAILURES, WITHOUT_DISTURBED = "without failures", "without disturbed runs"  # choices of sensitivities
ROBUST = "robust"
UNCHECKED = f"not checked {WITHOUT_DISTURBED}"
HOLDS, FAILS = f"holds {WITHOUT_DISTURBED}", f"does not hold {WITHOUT_DISTURBED}"


class Outcome(StrEnum):
    """What is claimed of a pair. Undecided is not equivalent; not judged: there were too few seeds to claim anything."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    EQUIVALENT_THOUGH_DIFFERENT = "equivalent though different"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"

    @property
    def text(self) -> str:
        """The outcome as people read it."""
        return "not decided" if self is Outcome.UNDECIDED else self.value


_FLIPPED = {Outcome.BETTER: Outcome.WORSE, Outcome.WORSE: Outcome.BETTER}


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
class PairedDifference:
    """One − other of a seed on the question's scale; ±inf where exactly one run failed, None where nothing can be compared."""

    seed: int
    one: float | None
    other: float | None
    difference: float | None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The verdict under another reasonable choice, e.g. "without failures", "median", "without seed 3", "energy weights low"."""

    choice: str
    outcome: Outcome
    interval: Interval | None

    @property
    def is_unchecked(self) -> bool:
        """Whether too few pairs are undisturbed to know."""
        return self.choice == WITHOUT_DISTURBED and self.outcome is Outcome.NOT_JUDGED


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is claimed of `one` against `other` (labels) on a question in a scope, and all that it rests on.

    `interval` is of one − other on the question's scale, at the family's confidence. `noise_floor`: that of an A/A pair in
    the same scope and question; None: the file names no entry twice.
    `disturbance`: of the runs that it rests on; without those it has to hold too, or is not called robust.
    `weights`: of modelled energy the range of weights over which it holds, and of which servers that is.
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
    disturbance: Disturbance = field(default_factory=Disturbance)
    weights: WeightRange | None = None
    seeds_to_decide: int | None = None
    is_noise: bool = False  # an A/A pair: in no family
    is_estimated: bool = False

    def outcome_for(self, label: str) -> Outcome:
        """Return the outcome as it is for `label`, whichever of the two it is."""
        return self.outcome if label == self.one else _FLIPPED.get(self.outcome, self.outcome)

    @property
    def is_by_failures(self) -> bool:
        """Whether the one that is worse is so by its failed runs: without these there is another verdict, or too few seeds."""
        if self.interval is not None and math.isinf(self.interval.estimate):
            return True
        if self.outcome not in _FLIPPED or not self.failures[0 if self.outcome is Outcome.WORSE else 1]:
            return False
        return any(
            sensitivity.choice == WITHOUT_FAILURES and sensitivity.outcome is not self.outcome
            for sensitivity in self.sensitivities
        )

    @property
    def seeds(self) -> int:
        """How many seeds both have."""
        return self.interval.n if self.interval is not None else sum(row.difference is not None for row in self.differences)

    @property
    def changing(self) -> tuple[Sensitivity, ...]:
        """The other choices that come to another verdict."""
        return tuple(other for other in self.sensitivities if other.outcome is not self.outcome and not other.is_unchecked)

    @property
    def robustness(self) -> str:
        """`robust`, `not robust`, or that too few pairs are undisturbed to know; "" where nothing else was tried."""
        if not self.sensitivities:
            return ""
        if self.changing:
            return "not robust"
        return UNCHECKED if any(other.is_unchecked for other in self.sensitivities) else ROBUST

    @property
    def is_robust(self) -> bool:
        """Whether every sensitivity has the same outcome."""
        return self.robustness == ROBUST


@dataclass(frozen=True, slots=True, kw_only=True)
class OverTasks:
    """What the tasks of a file say of a pair (labels): the mean of one − other, each task with the same weight.

    `mean`: on the question's scale, of regret for quality, at the family's confidence; n: the sampler streams.
    `p`: of the sign-flip test, times the family's size. `ahead`: in how many tasks the one is, and in how many the other.
    `disturbance`: of the runs that it rests on. `without_disturbed`: of a claim whether it holds without those, in words; ""
    where nothing is claimed, or none is disturbed. `weights`, `is_estimated`: as of a verdict.
    """

    one: str
    other: str
    tasks: tuple[str, ...]
    mean: Interval | None = None
    p: float | None = None
    ahead: tuple[int, int] = (0, 0)
    failures: tuple[int, int] = (0, 0)
    disturbance: Disturbance = field(default_factory=Disturbance)
    without_disturbed: str = ""
    weights: WeightRange | None = None
    is_estimated: bool = False
    reason: str = ""  # why there is no mean
    is_noise: bool = False  # an A/A pair: in no family


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossTasks:
    """One question over the tasks of a file, for one sampler and pruner. `compared`: its pairs, then the A/A pairs.

    `texts`: what is said of it.
    """

    question: Question
    scope: Scope  # its `task` is ""
    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    compared: tuple[OverTasks, ...]  # none before all runs have ended
    texts: tuple[str, ...] = ()
    tasks_of: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)  # in which both of a pair have values
    is_regret: bool = False  # what is compared is the normalised regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All answers of a results folder."""

    results: Results
    name: str
    questions: tuple[Question, ...]
    scopes: tuple[Scope, ...]
    groups: tuple[Group, ...]
    verdicts: tuple[Verdict, ...]
    across: tuple[AcrossTasks, ...]
    statuses: Mapping[str, int]  # of all planned runs; the denominator is the plan
    family_size: int
    confidence: float
    analysis: Mapping[str, Any]  # as frozen
