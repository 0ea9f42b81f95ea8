"""What a user asks of a framework, and which measured sizes surround what is asked for: nothing beyond them is ever used."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneoff.base.format import figure
from tuneoff.errors import ExperimentError
from tuneoff.judge.fault_results import ADAPTER

WORKERS, TRIAL_SECONDS, TRIALS = "workers", "trial_seconds", "trials"
_NAMES = {WORKERS: "worker", TRIALS: "trial"}
Range = tuple[float, float]
NEAR = 1.1  # nobody knows the length of a trial better: within this factor of a measured one it counts as measured
_LEAST = 1e-9


def size_text(name: str, ends: tuple[float, float]) -> str:
    """Return a size, or a range of it, in words: "2 workers", "0.4 to 0.5 s per trial"."""
    low, high = ends
    if name == TRIAL_SECONDS:
        return f"{figure(low)}{f' to {figure(high)}' if high != low else ''} s per trial"
    text = f"{low:g}" if high == low else f"{low:g} to {high:g}"
    return f"{text} {_NAMES[name]}{'' if low == high == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The constraints; None or nothing: any. `faults_by`: whose settings must survive, the adapter's or the framework's own."""

    workers: int | None = None
    trial_seconds: float | None = None
    trials: int | None = None
    must_retry: bool = False
    platform: str | None = None
    sampler: str | None = None
    pruner: str | None = None
    must_survive: tuple[str, ...] = ()
    never_silently_wrong: bool = False
    faults_by: str = ADAPTER

    def __post_init__(self) -> None:
        for name, value in self.sizes.items():
            if not 0 < value < float("inf"):
                raise ExperimentError(f"--{name.replace('_', '-')} must be above 0, but got {value:g}")

    @property
    def sizes(self) -> Mapping[str, float]:
        """The sizes that must lie in what was measured."""
        sizes = {WORKERS: self.workers, TRIAL_SECONDS: self.trial_seconds, TRIALS: self.trials}
        return {name: value for name, value in sizes.items() if value is not None}

    @property
    def needs_faults(self) -> bool:
        """Whether the results of `tuneoff faults` decide."""
        return bool(self.must_survive) or self.never_silently_wrong

    def names(self) -> list[str]:
        """Return the constraints in words."""
        names = [size_text(name, (value, value)) for name, value in self.sizes.items()]
        named = {"platform": self.platform, "sampler": self.sampler, "pruner": self.pruner}
        names += [f"{kind} {name}" for kind, name in named.items() if name is not None]
        names += ["a lost trial is tried again"] if self.must_retry else []
        by = "its adapter" if self.faults_by == ADAPTER else "its own defaults"
        names += [f"survives {', '.join(self.must_survive)} by {by}"] if self.must_survive else []
        names += [f"never silently wrong by {by}"] if self.never_silently_wrong else []
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """The places of the settings that are used; `is_exact`: all of them are at the asked one. Without any, `outside` says
    why: by size what was asked for and what was measured, or nothing where only the combination was not."""

    used: tuple[int, ...] = ()
    is_exact: bool = False
    outside: Mapping[str, Range] | None = None


def bracket(wanted: Mapping[str, float], measured: Sequence[Mapping[str, Range]]) -> Bracket:
    """Return the measured settings that surround the asked one, the nearest on each side; all of them without any size.

    For each combination of sides (at most so many workers and at least so long trials, ...) one must have been measured. A
    setting that is at an asked size is on both of its sides. What lacks an asked size is not used.
    """
    candidates = {index: sizes for index, sizes in enumerate(measured) if all(name in sizes for name in wanted)}
    at = tuple(
        index for index, sizes in candidates.items() if all(_side(name, wanted[name], sizes[name]) == 0 for name in wanted)
    )
    if at:
        return Bracket(used=at, is_exact=True)
    used: set[int] = set()
    for sides in itertools.product((-1, 1), repeat=len(wanted)):
        beside = {
            index: _distance(wanted, sizes)
            for index, sizes in candidates.items()
            if all(_side(name, wanted[name], sizes[name]) in (0, side) for name, side in zip(wanted, sides, strict=True))
        }
        if not beside:
            ranges = spans(list(candidates.values()))
            outside = {name: ranges[name] for name in wanted if name in ranges and _side(name, wanted[name], ranges[name]) != 0}
            return Bracket(outside=outside)
        least = min(beside.values())
        used |= {index for index, distance in beside.items() if math.isclose(distance, least, rel_tol=1e-6, abs_tol=1e-9)}
    return Bracket(used=tuple(sorted(used)))


def spans(measured: Sequence[Mapping[str, Range]]) -> dict[str, Range]:
    """Return the least and the greatest of each size."""
    names = dict.fromkeys(name for sizes in measured for name in sizes)
    ends = {name: [sizes[name] for sizes in measured if name in sizes] for name in names}
    return {name: (min(low for low, _ in ranges), max(high for _, high in ranges)) for name, ranges in ends.items()}


def _side(name: str, wanted: float, measured: Range) -> int:
    """Return -1 if the measured range is below what is asked for, 1 if above, 0 if it holds it."""
    low, high = measured
    factor = NEAR if name == TRIAL_SECONDS else 1.0
    return -1 if high * factor < wanted else 1 if low / factor > wanted else 0


def _distance(wanted: Mapping[str, float], measured: Mapping[str, Range]) -> float:
    """Return the greatest ratio of a size to the nearest measured one, as a logarithm."""
    ratios = [0.0]
    for name, value in wanted.items():
        side = _side(name, value, measured[name])
        if side:
            ratios.append(abs(math.log(max(measured[name][1 if side < 0 else 0], _LEAST) / value)))
    return max(ratios)
