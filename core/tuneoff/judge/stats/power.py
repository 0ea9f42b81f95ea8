"""What a number of seeds can find, for the very test that judges.

The test rejects where the k-th smallest Walsh average is above 0. So of n standard normal differences it finds a shift above the
negative of that average: the quantile of it over keyed samples is the detectable effect. Beyond 30 seeds it is that of the t-test
at n times 3/π, the asymptotic relative efficiency of the signed-rank test (Pitman): within 1 % there.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from tuneoff.judge.stats import signed_rank
from tuneoff.judge.stats.location import students_t_quantile
from tuneoff.judge.stats.sign_flip import generator

if TYPE_CHECKING:
    import numpy as np

SIMULATED_UP_TO = 30  # seeds
SAMPLES = 20_000
CHUNK = 2_000
MOST_SEEDS = 1_000  # beyond, no number that anyone would run is enough
EFFICIENCY = 3 / math.pi


@lru_cache(maxsize=1024)
def detectable(n: int, alpha: float, power: float = 0.8) -> float:
    """Return the difference, in standard deviations of the paired difference, that n seeds find with this power.

    inf where n is too small for any claim at alpha. The differences are taken as normal.
    """
    import numpy as np

    if n < 1 or signed_rank.least_n(alpha) > n:
        return math.inf
    if n > SIMULATED_UP_TO:
        quantile = students_t_quantile(1 - alpha / 2, n - 1)
        # The t statistic of a shift varies a little more than 1: by its own deviation's estimate.
        spread = math.sqrt(1 + quantile**2 / (2 * (n - 1)))
        return (quantile + NormalDist().inv_cdf(power) * spread) / math.sqrt(n * EFFICIENCY)
    return float(np.quantile(_least_shifts(n, alpha), power))


@lru_cache(maxsize=1024)
def seeds_needed(effect_in_sd: float, alpha: float, power: float = 0.8) -> int | None:
    """Return the number of seeds with which a difference of this size is found; None: more than anyone would run."""
    effect = abs(effect_in_sd)
    least = signed_rank.least_n(alpha)
    if not effect > 0 or detectable(MOST_SEEDS, alpha, power) > effect:
        return None
    low, high = least - 1, MOST_SEEDS  # low is too few, high is enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detectable(middle, alpha, power) <= effect else (middle, high)
    return high


@lru_cache(maxsize=256)
def _least_shifts(n: int, alpha: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return of each sample of n standard normal differences the shift from which on the test finds it."""
    import numpy as np

    draw = generator("detectable", str(n))
    k = signed_rank.depth(n, alpha)
    first, second = np.triu_indices(n)
    shifts = []
    for _ in range(SAMPLES // CHUNK):
        sample = draw.standard_normal((CHUNK, n))
        walsh = (sample[:, first] + sample[:, second]) / 2
        shifts.append(-np.partition(walsh, k - 1, axis=1)[:, k - 1])
    return np.concatenate(shifts)
