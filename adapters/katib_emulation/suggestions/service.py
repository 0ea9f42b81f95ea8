"""One algorithm at work for one experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from katib_emulation.suggestions.grid import Grid
from katib_emulation.suggestions.multivariate_tpe import MultivariateTpe
from katib_emulation.suggestions.parameters import parameters_of
from katib_emulation.suggestions.random_search import RandomSearch
from katib_emulation.suggestions.settings import settings_of
from katib_emulation.suggestions.told import Told


class Algorithm(Protocol):
    """Makes configurations."""

    def suggest(self, index: int, told: Sequence[Told]) -> dict[str, str]:
        """Return the configuration with number `index` (from 0), with every value as text."""


def algorithm_for(experiment: Mapping[str, Any], past: Sequence[tuple[str, Mapping[str, str]]] = ()) -> Algorithm:
    """Return the algorithm of an Experiment whose settings are valid.

    Args:
        experiment: the Experiment.
        past: (trial name, configuration) of each suggestion that was made before, in another life of the server.

    Raises:
        ValueError: the algorithm cannot work on this space.
    """
    spec = experiment["spec"]
    settings = settings_of(spec["algorithm"])
    seed = settings.get("random_state") or experiment["metadata"]["uid"]
    parameters = parameters_of(experiment)
    name = spec["algorithm"]["algorithmName"]
    if name == "multivariate-tpe":
        return MultivariateTpe(parameters, seed, settings, spec["objective"]["type"], past)
    return Grid(parameters, seed) if name == "grid" else RandomSearch(parameters, seed)
