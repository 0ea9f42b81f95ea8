"""What is recommended, and all that it rests on.

Who dominates whom in a scope is by verdicts alone. One dominates another if it is better in at least one question, shown to be
not worse in every other one, and failed no more often. Undecided and not judged show nothing, so they let nothing dominate; a
question of which a pair has no figures in any seed says nothing of that pair. Every dominance is of a pair: a further adapter
changes none between others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tuneoff.judge.answers.answer import Outcome, Verdict
from tuneoff.judge.answers.differences import BOTH_FAILED
from tuneoff.judge.choice.choice import Choice
from tuneoff.judge.choice.deciding import Unfinished
from tuneoff.judge.recommend.eligibility import Candidate
from tuneoff.judge.recommend.request import MeasuredSetting, OnStandIn, Range, Request
from tuneoff.judge.results import Results

_NOT_WORSE = (Outcome.BETTER, Outcome.EQUIVALENT, Outcome.EQUIVALENT_THOUGH_DIFFERENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """`one` dominates `other`: the questions in which it is better, those in which it is as good, and those without figures."""

    one: str
    other: str
    better: tuple[str, ...]
    as_good: tuple[str, ...]
    without_figures: tuple[str, ...] = ()


def has_figures(verdict: Verdict) -> bool:
    """Tell whether some seed has something to compare."""
    return any(pair.difference is not None and pair.reason != BOTH_FAILED for pair in verdict.differences)


def between(verdicts: Sequence[Verdict], one: str, other: str) -> list[Verdict]:
    """Return the verdicts of a pair, whichever is named first; none of equal entries."""
    return [verdict for verdict in verdicts if not verdict.is_noise and {verdict.one, verdict.other} == {one, other}]


def dominances(verdicts: Sequence[Verdict], labels: Sequence[str], failures: Mapping[str, int]) -> list[Dominance]:
    """Return every dominance between the labels in one scope. `failures`: runs by label that were tried and came to nothing."""
    found = []
    for one in labels:
        for other in labels:
            if one != other:
                dominance = _dominance(between(verdicts, one, other), one, other)
                if dominance is not None and failures.get(one, 0) <= failures.get(other, 0):
                    found.append(dominance)
    return found


def front(labels: Sequence[str], found: Sequence[Dominance]) -> list[str]:
    """Return the labels that nobody dominates; who dominates its own dominator, over others, is dominated by nobody."""
    below = {label: _reached(label, found) for label in labels}
    return [label for label in labels if not any(label in below[one] and one not in below[label] for one in labels)]


def _dominance(verdicts: Sequence[Verdict], one: str, other: str) -> Dominance | None:
    telling = [verdict for verdict in verdicts if has_figures(verdict)]
    outcomes = [verdict.outcome_for(one) for verdict in telling]
    if Outcome.BETTER not in outcomes or any(outcome not in _NOT_WORSE for outcome in outcomes):
        return None
    named = [(verdict.question.name, outcome is Outcome.BETTER) for verdict, outcome in zip(telling, outcomes, strict=True)]
    return Dominance(
        one=one,
        other=other,
        better=tuple(name for name, is_better in named if is_better),
        as_good=tuple(name for name, is_better in named if not is_better),
        without_figures=tuple(verdict.question.name for verdict in verdicts if not has_figures(verdict)),
    )


def _reached(label: str, found: Sequence[Dominance]) -> set[str]:
    """Return whom a label dominates, directly or over others."""
    reached: set[str] = set()
    ahead = [label]
    while ahead:
        place = ahead.pop()
        new = {one.other for one in found if one.one == place} - reached
        reached |= new
        ahead += new
    return reached


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A run that a reason rests on."""

    folder: Path
    run_id: str
    execution_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One sentence, and the runs that it rests on."""

    text: str
    runs: tuple[Cited, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One measured setting: who is dominated there, who is on the front, and why."""

    setting: MeasuredSetting
    dominances: tuple[Dominance, ...]
    front: tuple[str, ...]
    reasons: tuple[Reason, ...]
    is_judged: bool  # some pair has a verdict
    is_indifferent: bool  # every verdict between those on the front says that no difference matters
    undecided: tuple[str, ...] = ()  # questions, between those on the front


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """What was shown of `one` against `other`, by question; where it is better in nothing it is the one that is behind.

    `is_everywhere`: every setting that is used shows the same. `failed_less`: than the other.
    """

    one: str
    other: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    undecided: tuple[str, ...]
    is_everywhere: bool
    failed_less: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The settings of one workload, sampler and pruner that are at the request, or lie around it.

    `recommended`: on the front of every setting that is used, or of none where that is nobody: then of any. `differs`: how
    the settings disagree. `dominated`: dominated in every one in which they were measured. `against`: of those recommended, and
    of each against the floor. `without_margin`: by question that is undecided between them, why it has no margin.
    """

    name: str
    is_exact: bool
    weighed: tuple[Weighed, ...]
    recommended: tuple[str, ...]
    dominated: tuple[str, ...]
    differs: tuple[Reason, ...] = ()
    unmeasured: tuple[str, ...] = ()  # "optuna: not measured at 4 workers"
    against: tuple[Against, ...] = ()
    without_margin: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Why a family does not surround the request: by size what was measured; nothing: only the combination was not."""

    family: str
    measured: tuple[tuple[str, Range], ...]
    beyond: tuple[str, ...]  # the sizes that are outside
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The whole answer. `headline`: the first lines, in words. `exit_code`: 0 where something measured is recommended."""

    request: Request
    folders: tuple[Path, ...]
    unfinished: Mapping[Path, Unfinished]  # by folder; none of one in which all runs have ended
    files: Mapping[str, Results]  # by the path of their experiment file
    candidates: tuple[Candidate, ...]
    families: tuple[Family, ...]
    outside: tuple[Outside, ...]
    on_stand_ins: tuple[OnStandIn, ...]
    measured: tuple[str, ...]  # adapters that can, and were measured with what was asked for, at whatever size
    not_measured: tuple[str, ...]  # adapters that can, and were not
    lacking: tuple[str, ...]  # lines of a matrix file that no folder's file has: "sampler: tpe"
    headline: tuple[str, ...]
    choices: tuple[Choice, ...]  # of each folder, among who can; none where sizes are asked for
    exit_code: int

    @property
    def capable(self) -> tuple[Candidate, ...]:
        return tuple(one for one in self.candidates if one.is_capable)

    @property
    def excluded(self) -> tuple[Candidate, ...]:
        return tuple(one for one in self.candidates if not one.is_capable)
