"""Where simulated values come from. All are made of standard normal numbers; half of their variance is what a seed shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tuneoff.judge.stats.sign_flip import generator

Floats = NDArray[np.float64]
IMAGES = 360
SHARED = 0.5  # of the variance: the correlation of two adapters over seeds, before what follows
REFERENCE = 4_000_000  # values from which true medians are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Values of a run, from standard normal numbers `z` of any shape. `step`: 1 where they are counts on a grid, else 0."""

    name: str
    text: str
    of: Callable[[np.random.Generator, Floats, float], Floats]  # (generator, z, effect in the unit of its differences)
    is_ratio: bool = False  # compared by ln(one / other)
    step: float = 0.0

    def values(self, draw: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Return independent values."""
        return self.of(draw, draw.standard_normal(shape), 0.0)

    def family(self, draw: np.random.Generator, families: int, adapters: int, n: int) -> Floats:
        """Return values (families, adapters, n) of equal adapters that share their seeds, as they are subtracted."""
        return self._compared(self.of(draw, _latent(draw, families, adapters, n), 0.0))

    def differences(self, draw: np.random.Generator, pairs: int, n: int, effect: float = 0.0) -> Floats:
        """Return the differences (pairs, n) of two adapters that differ by `effect`, in the unit of the differences.

        It is the second that is lower: an accuracy near 1 could not be higher by as much.
        """
        latent = _latent(draw, pairs, 2, n)
        first = self._compared(self.of(draw, latent[:, 0], 0.0))
        return first - self._compared(self.of(draw, latent[:, 1], -effect))

    def standard_effect(self, size: float = 1.0) -> float:
        """Return the effect that is `size` standard deviations of the paired difference that it makes."""
        return _standard_effect(self, size)

    def _compared(self, values: Floats) -> Floats:
        return np.log(values) if self.is_ratio else values


@lru_cache
def _standard_effect(distribution: Distribution, size: float) -> float:
    draw = generator("standard effect", distribution.name, str(size))
    effect = 0.0
    for _ in range(6 if distribution.step else 1):  # the spread of accuracies depends on their height
        effect = size * float(distribution.differences(draw, 200_000, 1, effect).std())
    return effect


def _latent(draw: np.random.Generator, families: int, adapters: int, n: int) -> Floats:
    seeds, adapter_draws = draw.standard_normal((families, 1, n)), draw.standard_normal((families, adapters, n))
    return np.asarray(np.sqrt(SHARED) * seeds + np.sqrt(1 - SHARED) * adapter_draws)


def _normal(draw: np.random.Generator, z: Floats, effect: float) -> Floats:
    return z + effect


def _lognormal(draw: np.random.Generator, z: Floats, effect: float) -> Floats:
    return np.exp(z) + effect


def _spiked(draw: np.random.Generator, z: Floats, effect: float) -> Floats:
    usual = 60 * np.exp(0.05 * z)
    spike = np.where(draw.random(z.shape) < 0.1, 1 + draw.exponential(1.0, z.shape), 1.0)
    return np.asarray(usual * spike * np.exp(effect))


def _correct(share: float, spread: float) -> Callable[[np.random.Generator, Floats, float], Floats]:
    def counts(draw: np.random.Generator, z: Floats, effect: float) -> Floats:
        return draw.binomial(IMAGES, np.clip(share + spread * z + effect / IMAGES, 0, 1)).astype(np.float64)

    return counts


NORMAL = Distribution(name="normal", text="standard normal", of=_normal)
LOGNORMAL = Distribution(name="lognormal", text="exp of a standard normal", of=_lognormal)
SPIKED = Distribution(
    name="spiked times",
    text="60 s times exp(0.05 z); one in ten takes 1 + Exp(1) times as long; pairs are compared by the logarithm of their ratio",
    of=_spiked,
    is_ratio=True,
)
GRID = Distribution(
    name="accuracies on 1/360",
    text="of 360 images a binomial number is right, with a probability of 0.93 + 0.01 z",
    of=_correct(0.93, 0.01),
    step=1.0,
)
TIES = Distribution(
    name="accuracies, many ties",
    text="the same with 0.992 + 0.001 z: every fifth or so paired difference is 0",
    of=_correct(0.992, 0.001),
    step=1.0,
)
STATED = (NORMAL, LOGNORMAL, SPIKED, GRID)
ALL = (*STATED, TIES)
