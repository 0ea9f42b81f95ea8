"""Core's own draws: random configurations and the order of a grid, from `random.Random(seed)` and `from_unit` alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tuneoff.base.identity import configuration_digest
from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec

MAX_REPEATS = 10_000  # draws in a row that give nothing new before `sample_distinct` gives up


def draw(space: SearchSpace, generator: random.Random) -> dict[str, Any]:
    """Return one configuration; one random number per searched dimension, in the space's order."""
    return space.from_units({name: generator.random() for name in space.searched})


def draws(space: SearchSpace, seed: int) -> Iterator[dict[str, Any]]:
    """Yield random configurations without end; the same seed gives the same ones on every machine."""
    generator = random.Random(seed)
    while True:
        yield draw(space, generator)


def sample_distinct(space: SearchSpace, count: int, seed: int) -> list[dict[str, Any]]:
    """Return `count` different random configurations.

    Raises:
        ExperimentError: the space has fewer.
    """
    if space.cardinality is not None and space.cardinality < count:
        raise ExperimentError(f"at most {space.cardinality} different configurations exist, but {count} were asked for")
    found: dict[str, dict[str, Any]] = {}
    repeats = 0
    for configuration in draws(space, seed):
        if len(found) == count:
            break
        before = len(found)
        found.setdefault(configuration_digest(configuration), configuration)
        repeats = 0 if len(found) > before else repeats + 1
        if repeats > MAX_REPEATS:
            raise ExperimentError(f"{count} of {space.cardinality} configurations could not be drawn by chance; ask for fewer")
    return list(found.values())


def grid_order(space: SearchSpace, seed: int) -> list[dict[str, Any]]:
    """Return every configuration once, in an order shuffled by `seed`.

    Raises:
        ExperimentError: a dimension is continuous, or the grid is too large.
    """
    return shuffled(space.grid(), seed)


def shuffled(items: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """Return `items` in an order that depends on `seed` alone (`random.shuffle` may change between Python versions)."""
    result = list(items)
    generator = random.Random(seed)
    for last in range(len(result) - 1, 0, -1):
        other = int(generator.random() * (last + 1))
        result[last], result[other] = result[other], result[last]
    return result


def listed_configurations(spec: RunSpec) -> list[dict[str, Any]] | None:
    """Return the configurations that a run must evaluate, in order, or None where its sampler chooses them.

    `fixed`: the given list; `grid`: the shuffled grid; both cut at `budget.trials`.
    """
    experiment = spec.experiment
    if experiment.sampler.name == "fixed":
        return [dict(item) for item in experiment.configurations[: experiment.budget.trials]]
    if experiment.sampler.name == "grid":
        return grid_order(experiment.search_space, spec.sampler_seed)[: experiment.budget.trials]
    return None
