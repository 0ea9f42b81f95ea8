"""`multivariate-tpe`: Optuna's TPESampler with `multivariate` and `constant_liar`, as Katib's Optuna service uses it.

Each suggestion is drawn by a sampler with a seed of its own, so that it depends on nothing but the seed, its number, and the
trials told before.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from katib_emulation.suggestions.results import Told
from katib_emulation.suggestions.spaces import Parameter, derived

if TYPE_CHECKING:
    import optuna


class MultivariateTpe:
    """A study in memory. After a restart it is built again from the suggestions made before."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        seed: str,
        settings: Mapping[str, str],
        direction: str,
        past: Sequence[Mapping[str, str]],
    ) -> None:
        """Prepare the study.

        Args:
            parameters: the search space.
            seed: what all random numbers depend on.
            settings: the validated settings n_startup_trials and n_ei_candidates, as far as given.
            direction: minimize or maximize.
            past: the configurations that were suggested before this object was.

        Raises:
            ValueError: the space cannot be searched.
        """
        self._parameters = parameters
        self._seed = seed
        self._settings = {name: int(settings[name]) for name in ("n_startup_trials", "n_ei_candidates") if name in settings}
        self._numbers: dict[str, list[int]] = {}
        self._told: set[str] = set()
        self._study = _new_study(direction)
        self._distributions = {parameter.name: distribution_of(parameter) for parameter in parameters}
        for configuration in past:
            self._study.enqueue_trial({p.name: _parsed(p, configuration[p.name]) for p in parameters if p.name in configuration})
        for configuration in past:
            self._remember(configuration, self._study.ask(self._distributions).number)

    def suggest(self, index: int, told: Sequence[Told]) -> dict[str, str]:
        """Return the next configuration, after telling the results that are new.

        Raises:
            ValueError: a result belongs to no suggestion, or is no number.
        """
        self._tell(told)
        self._study.sampler = _sampler(derived(self._seed, "multivariate-tpe", index, bits=32), self._settings)
        trial = self._study.ask(self._distributions)
        configuration = {name: str(value) for name, value in trial.params.items()}
        self._remember(configuration, trial.number)
        return configuration

    def _remember(self, configuration: Mapping[str, str], number: int) -> None:
        self._numbers.setdefault(_key(configuration), []).append(number)

    def _tell(self, told: Sequence[Told]) -> None:
        for trial in told:
            if trial.name in self._told:
                continue
            numbers = self._numbers.get(_key(trial.configuration))
            if not numbers:
                raise ValueError("An unknown trial has been passed in the GetSuggestion request.")
            self._study.tell(numbers.pop(0), trial.value)
            self._told.add(trial.name)


def _key(configuration: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{value}" for name, value in sorted(configuration.items()))


def _new_study(direction: str) -> optuna.Study:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    way: Literal["minimize", "maximize"] = "maximize" if direction == "maximize" else "minimize"
    return optuna.create_study(sampler=_sampler(0, {}), direction=way)


def _sampler(seed: int, settings: Mapping[str, int]) -> optuna.samplers.TPESampler:
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            n_startup_trials=settings.get("n_startup_trials", 10),
            n_ei_candidates=settings.get("n_ei_candidates", 24),
            seed=seed,
            multivariate=True,
            constant_liar=True,
        )


def distribution_of(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    """Return Optuna's distribution as Katib's service chooses it.

    Raises:
        ValueError: the parameter cannot be searched.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    low, high, step, scale = parameter.minimum, parameter.maximum, parameter.step, parameter.distribution
    if parameter.type == "int":
        if scale == "logUniform":
            return IntDistribution(max(1, int(low)), int(high), log=True)
        return IntDistribution(int(low), int(high), step=int(step))
    if parameter.type == "double":
        if scale == "logUniform":
            return FloatDistribution(max(1e-10, float(low)), float(high), log=True)
        return FloatDistribution(float(low), float(high), step=float(step) if step else None)
    return CategoricalDistribution(parameter.values)


def _parsed(parameter: Parameter, text: str) -> int | float | str:
    if parameter.type == "int":
        return int(text)
    return float(text) if parameter.type == "double" else text
