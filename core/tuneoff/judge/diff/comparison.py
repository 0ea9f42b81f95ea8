"""What a comparison of two results folders says. A is the old one, B the new one; every difference is B − A.

And where the runs ran, and what differs: machine, packages, versions of frameworks, calibration.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.judge.answers.answer import Outcome, Question, Verdict
from tuneoff.judge.answers.phrases import is_within_noise
from tuneoff.judge.runs import Group, Scope
from tuneoff.judge.stats.location import Interval
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.run.machine import from_json

Sides = tuple[str, str]  # what A has and what B has, as text
_MACHINE = (  # times are compared where these are equal
    "cpu.vendor",
    "cpu.family",
    "cpu.model",
    "cpu.name",
    "cpu.stepping",
    "cpu.logical_count",
    "machine",
    "accelerators",
)
_ALSO = (
    "host",
    "kernel",
    "libc",
    "python",
    "container",
    "virtual_machine",
    "niceness",
    "memory_total_bytes",
    "power.meter",
    "power.kind",
    "limits.cpus",
    "workload.version",
    "workload.sha256",
)
_PROCESSORS = "cpus_available"
MOST = 3  # values of one side that are named
NOTHING = "none"


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
        return self.new in FAILED and self.old == "done"

    @property
    def is_recovery(self) -> bool:
        return self.old in FAILED and self.new == "done"


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


def is_same_machine(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> bool:
    """Tell whether both folders ran on the same kind of processor, and as many of them; without a record, no."""
    sides = [{_machine(record.environment) for record in records if record.environment} for records in (old, new)]
    return bool(sides[0]) and sides[0] == sides[1]


def differing(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> dict[str, Sides]:
    """Return what differs between the environments of two folders, by name."""
    ours, theirs = _collected(old), _collected(new)
    found = {}
    for name in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(name, {}), theirs.get(name, {})
        if set(one) != set(other):
            found[name] = (_text(one), _text(other))
    return found


def frozen_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Sides]:
    """Return what differs between two frozen analyses, by name; digests and lists of what was planned are left out."""
    names = ("questions", "primary_metric", "margin_percent", "quality_margin", "confidence", "family_size", "anchors")
    return {name: (_plain(old.get(name)), _plain(new.get(name))) for name in names if old.get(name) != new.get(name)}


def sentinel_ratio(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> float | None:
    """Return how many times as long the guard's calculation took before the runs of the new folder, by medians."""
    sides = [list(_sentinels(records)) for records in (old, new)]
    return statistics.median(sides[1]) / statistics.median(sides[0]) if all(sides) else None


def _sentinels(records: Sequence[RunRecord]) -> Iterator[int]:
    for record in records:
        state = from_json(record.environment.get("machine_before"))
        if state is not None:
            yield state.sentinel_ns


def _machine(environment: Mapping[str, Any]) -> tuple[str, ...]:
    return (*(_plain(_at(environment, name)) for name in _MACHINE), _processors(environment))


def _collected(records: Sequence[RunRecord]) -> dict[str, dict[str, None]]:
    """Return every value of every name that some record has."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in _of_record(record):
            found.setdefault(name, {})[value] = None
    return found


def _of_record(record: RunRecord) -> Iterator[tuple[str, str]]:
    environment = record.environment
    if environment:
        for name in (*_MACHINE, *_ALSO):
            yield name.replace("_", " ").replace(".", " "), _plain(_at(environment, name))
        yield "processors", _processors(environment)
        versions = environment.get("versions")
        for package, version in versions.items() if isinstance(versions, Mapping) else ():
            yield str(package), _plain(version)
    framework, version = record.versions.get("framework"), record.versions.get("framework_version")
    if isinstance(framework, str) and framework != NOTHING:
        yield f"framework {framework}", _plain(version)


def _processors(environment: Mapping[str, Any]) -> str:
    available = environment.get(_PROCESSORS)
    return str(len(available)) if isinstance(available, list | tuple) else _plain(available)


def _at(value: Any, name: str) -> Any:
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _plain(value: Any) -> str:
    return NOTHING if value is None else value if isinstance(value, str) else str(value)


def _text(values: Mapping[str, None]) -> str:
    names = list(values)
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more if names else NOTHING
