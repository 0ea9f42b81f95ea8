"""What a comparison of two results folders says. A is the old one, B the new one; every difference is B − A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tuneoff.judge.answers.answer import Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import is_within_noise
from tuneoff.judge.runs import Group, Scope
from tuneoff.judge.stats.location import Interval

Sides = tuple[str, str]  # what A has and what B has, as text


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The runs that both folders planned of one adapter entry in one scope, so of the same experiment."""

    old: Group
    new: Group

    @property
    def name(self) -> str:
        return f"{self.old.label} {self.old.scope.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What two equal entries differ by within one folder, A or B."""

    side: str
    pair: str
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One question of a matched entry. `verdict`: of B (`one`) against A (`other`); None: not compared, and `reason` says why.

    `noise`: what equal entries differ by within A and within B, where a folder has such.
    """

    name: str
    adapter: str
    scope: Scope
    question: Question
    verdict: Verdict | None
    reason: str
    noise: tuple[Noise, ...] = ()

    @property
    def outcome(self) -> Outcome | None:
        return None if self.verdict is None else self.verdict.outcome

    @property
    def is_beyond_noise(self) -> bool:
        """Whether B is judged to be better or worse than A."""
        return self.outcome in (Outcome.BETTER, Outcome.WORSE)

    @property
    def is_within_equal_entries(self) -> bool:
        """Whether equal entries of one of the folders may differ by as much."""
        interval = self.verdict.interval if self.verdict is not None else None
        return any(is_within_noise(interval, one.interval) for one in self.noise)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exact:
    """The metrics of every epoch that both trained of the same configuration and seed, bit for bit.

    `is_due`: both ran on the same kind of machine, so that unequal bits are a change.
    """

    name: str
    configurations: int  # that both trained
    tried: Sides  # configurations of A and of B in the same runs
    values: int
    unequal: int
    example: str
    is_due: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that came to another end, or was skipped on one side alone."""

    name: str
    seed: int
    old: str
    new: str
    reason: str

    @property
    def is_failure(self) -> bool:
        return self.new in ("failed", "timeout") and self.old == "done"

    @property
    def is_recovery(self) -> bool:
        return self.old in ("failed", "timeout") and self.new == "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The whole comparison. `environment` and `analysis`: what differs, as (A, B); `sentinel`: how many times as long the same
    calculation took before the runs of B; None: a folder does not tell."""

    folders: tuple[Path, Path]
    names: Sides
    runs: int  # planned in both
    same_machine: bool
    environment: Mapping[str, Sides]
    analysis: Mapping[str, Sides]
    sentinel: float | None
    changes: tuple[Change, ...]
    exact: tuple[Exact, ...]
    ended: tuple[Ended, ...]
    flags: Mapping[str, tuple[int, int]]  # runs that have it, where that differs
    left_out: tuple[str, ...]  # groups that cannot be compared, and why

    @property
    def beyond(self) -> tuple[Change, ...]:
        """What changed beyond noise, what got worse first."""
        return tuple(sorted((one for one in self.changes if one.is_beyond_noise), key=lambda one: one.outcome is Outcome.BETTER))

    @property
    def unequal(self) -> tuple[Exact, ...]:
        return tuple(one for one in self.exact if one.unequal and one.is_due)

    @property
    def has_changed(self) -> bool:
        """Whether anything changed beyond noise: a judged question, bits that are due to be equal, or how a run ends."""
        return bool(self.beyond or self.unequal or self.ended)

    @property
    def is_judged(self) -> bool:
        """Whether any question has a verdict: else nothing is known, and that nothing changed least of all."""
        return any(one.outcome not in (None, Outcome.NOT_JUDGED) for one in self.changes)
