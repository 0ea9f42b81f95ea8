"""Up to how many workers does a framework keep them busy? From the utilization of jobs that differ in their workers alone.

The knee is where two asymptotes cross: few workers are each as busy as the fewest that were measured, and of many the framework
keeps no more than so many busy at once.

Source: P. J. Denning and J. P. Buzen, ACM Comput. Surv. 10 (1978) 225, section 5.2 (the saturation point N*).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneoff.base.format import counted, two_digits
from tuneoff.judge.stats.location import Interval, median

BUSY = 95.0  # % of utilization; less is called a loss
Utilization = Mapping[int, float]  # in %, by the number of workers; 0: the run failed


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


def limit(by_seed: Sequence[Utilization], confidence: float) -> Limit:
    """Return the limit of a framework, by the seeds that were measured with the most workers: only they saw what `measured` says.

    `by_seed`: at least one, each with at least one number of workers.
    """
    most = max(max(utilization) for utilization in by_seed)
    seen = [utilization for utilization in by_seed if most in utilization]
    below = []
    for utilization in seen:
        most_busy = max((count for count, share in utilization.items() if share >= BUSY), default=0)
        below.append(min((count for count in utilization if count > most_busy), default=math.inf))
    below.sort()
    knee = median([_knee(utilization) for utilization in seen], confidence)
    return Limit(
        below=below[(len(below) - 1) // 2],
        low=below[0],
        high=below[-1],
        measured=most,
        knee=knee if math.isfinite(knee.estimate) else None,
    )


def _knee(utilization: Utilization) -> float:
    """Return the workers at the knee; infinite beyond the last but one number that did not fail: one more is not a ceiling."""
    counts = sorted(count for count, share in utilization.items() if share > 0)
    if len(counts) < 3:
        return math.inf
    knee = max(count * utilization[count] for count in counts) / utilization[counts[0]]
    return knee if knee <= counts[-2] else math.inf


def _count(workers: float) -> str:
    return "none" if math.isinf(workers) else f"{workers:g}"
