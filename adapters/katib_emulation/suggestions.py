"""What Katib's algorithm services answer: the configurations of new trials, and the rules for stopping trials early.

`random` (Katib: hyperopt) and `grid` (Katib: Optuna's GridSampler) are written here; `multivariate-tpe` is Optuna's TPESampler as
in Katib, of the installed version; `medianstop` is written here. The distributions and settings are Katib's. The random numbers
are not: with `random_state` the n-th suggestion of an experiment is the same whatever the batches were in which suggestions were
asked for (for multivariate-tpe: given the same results before it), and after a restart of the server. Katib's hyperopt service
draws a new seed for every call, so its sequence depends on how many slots were free. Without `random_state` the seed comes from
the experiment's uid. All numbers are strings in the Experiment.
"""

from __future__ import annotations

import hashlib
import math
import random
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

from katib_emulation.objects import conditions_of, has_condition

if TYPE_CHECKING:
    import optuna

Configuration = dict[str, str]
Reports = Callable[[str], Sequence[str]]
"""Gives the objective's values of a trial, as text, in the order of time."""

SETTINGS = {
    # what a service knows, with the least value
    "random": {"random_state": 0},
    "grid": {"random_state": 0},
    "multivariate-tpe": {"n_startup_trials": 0, "n_ei_candidates": 0, "random_state": 0},
    "medianstop": {"min_trials_required": 1, "start_step": 1},
}


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """One finished trial, as a service is told of it."""

    name: str
    configuration: Mapping[str, str]
    value: float


def algorithm_for(experiment: Mapping[str, Any], past: Sequence[Mapping[str, str]] = ()) -> Algorithm:
    """Return the algorithm of an Experiment whose settings are valid.

    Args:
        experiment: the Experiment.
        past: each configuration that was suggested before, in another life of the server.

    Raises:
        ValueError: the algorithm cannot work on this space.
    """
    spec = experiment["spec"]
    settings, parameters = settings_of(spec["algorithm"]), parameters_of(experiment)
    seed = settings.pop("random_state", "") or experiment["metadata"]["uid"]
    match spec["algorithm"]["algorithmName"]:
        case "grid":
            return Grid(parameters, seed)
        case "random":
            return RandomSearch(parameters, seed)
    return MultivariateTpe(parameters, seed, settings, spec["objective"]["type"], past)


def settings_of(part: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of `spec.algorithm` or `spec.earlyStopping` by name; the last one counts."""
    return {setting.get("name", ""): setting.get("value", "") for setting in part.get("algorithmSettings", ())}


def why_refused(experiment: Mapping[str, Any]) -> str | None:
    """Return why the services refuse the settings of an Experiment, or its space; None if they take them."""
    spec = experiment["spec"]
    for part, request in (("algorithm", "ValidateAlgorithmSettings"), ("earlyStopping", "ValidateEarlyStoppingSettings")):
        name = spec.get(part, {}).get("algorithmName")
        for setting, value in settings_of(spec.get(part, {})).items():
            least = SETTINGS[name].get(setting)
            if least is None:
                return f"{request} Error: unknown setting {setting} for algorithm {name}"
            if not value.isdecimal() or int(value) < least:
                return f"{request} Error: {setting} must be a whole number of at least {least}, but is {value}"
    if spec["algorithm"]["algorithmName"] != "grid":
        return None
    try:
        size = Grid(parameters_of(experiment), "").size
    except ValueError as error:
        return f"ValidateAlgorithmSettings Error: failed to validate parameters: {error}"
    most = spec.get("maxTrialCount", 0)
    why = f"Max Trial Count: {most} > all possible search combinations: {size}"
    return f"ValidateAlgorithmSettings Error: {why}" if most > size else None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an Experiment. Numbers are still text: what cannot be read fails where it is used, as in the services."""

    name: str
    type: str  # int | double | categorical
    minimum: str
    maximum: str
    step: str
    values: tuple[str, ...]
    distribution: str  # uniform | logUniform


def parameters_of(experiment: Mapping[str, Any]) -> list[Parameter]:
    """Return the parameters of an Experiment in their order."""
    parameters = []
    for parameter in experiment["spec"].get("parameters", ()):
        space, kind = parameter["feasibleSpace"], parameter.get("parameterType", "")
        low, high, step = (space.get(name, "") for name in ("min", "max", "step"))
        step = step or ("1" if kind == "int" else "")
        scale = space.get("distribution", "uniform")
        parameters.append(Parameter(parameter.get("name", ""), kind, low, high, step, tuple(space.get("list", ())), scale))
    return parameters


def stream(*parts: object) -> random.Random:
    """Return a generator that depends on all parts, and on nothing else."""
    return random.Random(derived(*parts))


def derived(*parts: object, bits: int = 64) -> int:
    """Return a number of `bits` bits that depends on all parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)


class RandomSearch:
    """`random`: draws suggestion `index` from a stream of its own."""

    def __init__(self, parameters: Sequence[Parameter], seed: str) -> None:
        self._parameters, self._seed = parameters, seed

    def suggest(self, index: int, results: Sequence[FinishedTrial]) -> Configuration:
        """Return the configuration with number `index` (from 0), with every value as text; results are of no account.

        Raises:
            ValueError: the space cannot be drawn from (text that is not a number, a logarithm of 0, an empty list).
        """
        draws = stream(self._seed, "random", index)
        return {parameter.name: draw(parameter, draws) for parameter in self._parameters}


def draw(parameter: Parameter, draws: random.Random) -> str:
    """Return one value of the parameter as text, with the distributions of Katib's hyperopt service and their peculiarities.

    A parameter with a step (an integer always has one: 1) is drawn as `round(draw / step) * step`: values are multiples of the
    step, not of min + k * step; both end points get half the mass of the others; and the result can leave [min, max].

    Raises:
        ValueError: the parameter cannot be drawn from.
    """
    if parameter.type == "categorical":
        if not parameter.values:
            raise ValueError(f"parameter {parameter.name} has an empty list")
        return draws.choice(parameter.values)
    low, high = float(parameter.minimum), float(parameter.maximum)
    is_log = parameter.distribution == "logUniform"
    value = math.exp(draws.uniform(math.log(low), math.log(high))) if is_log else draws.uniform(low, high)
    if parameter.step:
        step = float(parameter.step)
        value = round(value / step) * step
    return str(int(value)) if parameter.type == "int" else str(value)


def grid_values(parameter: Parameter) -> Sequence[str]:
    """Return the values of a parameter in a grid.

    Raises:
        ValueError: a double, or text that is not a number.
    """
    if parameter.type == "int":
        return [str(i) for i in range(int(parameter.minimum), int(parameter.maximum) + 1, int(parameter.step))]
    if parameter.type == "double":
        raise ValueError(f"Param {parameter.name}: the emulated grid has integers and categories only")
    return parameter.values


class Grid:
    """`grid`: each combination once, in shuffled order; once all were given, any whose trial has not succeeded (as in Optuna)."""

    def __init__(self, parameters: Sequence[Parameter], seed: str) -> None:
        self._parameters, self._seed = parameters, seed

    @cached_property
    def _axes(self) -> list[Sequence[str]]:
        return [grid_values(parameter) for parameter in self._parameters]

    @cached_property
    def _order(self) -> list[int]:
        order = list(range(self.size))
        stream(self._seed, "grid", 0).shuffle(order)
        return order

    @property
    def size(self) -> int:
        """The number of combinations.

        Raises:
            ValueError: the space is not a grid.
        """
        return math.prod(len(axis) for axis in self._axes)

    def suggest(self, index: int, results: Sequence[FinishedTrial]) -> Configuration:
        """Return the configuration with number `index` (from 0), with every value as text, by all results so far.

        Raises:
            ValueError: the space is not a grid, or empty.
        """
        if self.size == 0:
            raise ValueError("the grid has no combinations")
        if index < self.size:
            return self._configuration(self._order[index])
        ended = [result.configuration for result in results]
        open_ = [configuration for cell in self._order if (configuration := self._configuration(cell)) not in ended]
        return stream(self._seed, "grid", index).choice(open_ or [self._configuration(cell) for cell in self._order])

    def _configuration(self, cell: int) -> Configuration:
        values = []
        for axis in reversed(self._axes):
            cell, at = divmod(cell, len(axis))
            values.append(axis[at])
        return dict(zip((parameter.name for parameter in self._parameters), reversed(values), strict=True))


class MultivariateTpe:
    """`multivariate-tpe`: Optuna's TPESampler with `multivariate` and `constant_liar`, as Katib's Optuna service uses it.

    Each suggestion is drawn by a sampler with a seed of its own, so that it depends on nothing but the seed, its number, and the
    results before. The study is in memory: after a restart it is built again from the suggestions of the `past`.

    Raises:
        ValueError: the space cannot be searched.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        seed: str,
        settings: Mapping[str, str],
        direction: Literal["minimize", "maximize"],
        past: Sequence[Mapping[str, str]],
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._seed = seed
        self._settings = {"n_startup_trials": 10, "n_ei_candidates": 24, **{name: int(text) for name, text in settings.items()}}
        self._numbers: dict[Any, list[int]] = {}  # of the study's trials, by configuration
        self._evaluated: set[str] = set()
        self._study = optuna.create_study(sampler=self._sampler(0), direction=direction)
        self._distributions = {parameter.name: distribution_of(parameter) for parameter in parameters}
        parse = {parameter.name: {"int": int, "double": float}.get(parameter.type, str) for parameter in parameters}
        for configuration in past:
            self._study.enqueue_trial({name: parse[name](text) for name, text in configuration.items()})
        for _ in past:
            self._ask()

    def suggest(self, index: int, results: Sequence[FinishedTrial]) -> Configuration:
        """Return the configuration with number `index` (from 0), with every value as text, by all results so far.

        Raises:
            ValueError: a result belongs to no suggestion.
        """
        for result in results:
            if result.name not in self._evaluated:
                numbers = self._numbers.get(frozenset(result.configuration.items()))
                if not numbers:
                    raise ValueError("An unknown trial has been passed in the GetSuggestion request.")
                self._study.tell(numbers.pop(0), result.value)
                self._evaluated.add(result.name)
        self._study.sampler = self._sampler(derived(self._seed, "multivariate-tpe", index, bits=32))
        return self._ask()

    def _ask(self) -> Configuration:
        trial = self._study.ask(self._distributions)
        configuration = {name: str(value) for name, value in trial.params.items()}
        self._numbers.setdefault(frozenset(configuration.items()), []).append(trial.number)
        return configuration

    def _sampler(self, seed: int) -> optuna.samplers.TPESampler:
        import optuna

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            return optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True, **cast(Any, self._settings))


def distribution_of(parameter: Parameter) -> optuna.distributions.BaseDistribution:
    """Return Optuna's distribution as Katib's service chooses it.

    Raises:
        ValueError: the parameter cannot be searched.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    low, high, step, is_log = parameter.minimum, parameter.maximum, parameter.step, parameter.distribution == "logUniform"
    if parameter.type == "int":
        return IntDistribution(max(1, int(low)) if is_log else int(low), int(high), is_log, 1 if is_log else int(step))
    if parameter.type == "double":
        least = max(1e-10, float(low)) if is_log else float(low)
        return FloatDistribution(least, float(high), is_log, float(step) if step and not is_log else None)
    return CategoricalDistribution(parameter.values)


Algorithm = RandomSearch | Grid | MultivariateTpe


def results_of(trials: Iterable[Mapping[str, Any]]) -> list[FinishedTrial]:
    """Return what a service is told of these trials.

    Trials whose metrics are unavailable are left out; failed ones are sent, and ignored by every service.

    Raises:
        ValueError: a value is not a number (the collector makes "" of `nan`): after it the service answers no call, as in Katib.
    """
    results = []
    for trial in trials:
        conditions = conditions_of(trial)
        if has_condition(trial, "MetricsUnavailable") or not conditions:
            continue
        value = objective_value(trial)
        if conditions[-1]["type"] in ("Succeeded", "EarlyStopped") and value is not None:
            configuration = {
                assignment["name"]: assignment["value"] for assignment in trial["spec"].get("parameterAssignments", ())
            }
            results.append(FinishedTrial(trial["metadata"]["name"], configuration, float(value)))
    return results


def objective_value(trial: Mapping[str, Any]) -> str | None:
    """Return the objective's value by its strategy as text; the latest where there is no minimum or maximum; None without one."""
    objective = trial["spec"]["objective"]
    name = objective["objectiveMetricName"]
    strategy = next((s["value"] for s in objective.get("metricStrategies", ()) if s["name"] == name), None)
    observation = (trial.get("status") or {}).get("observation") or {}
    metric = next((m for m in observation.get("metrics", ()) if m["name"] == name), None)
    if metric is None or strategy is None:
        return None
    value: str = metric.get(strategy, "")  # empty text is left out of objects
    if value == "unavailable":
        value = metric.get("latest", "")
    return None if value == "unavailable" else value


class MedianStop:
    """The rule of `medianstop`. Its name says median; what Katib computes is a mean of means.

    Over the first `start_step` reports of each succeeded trial the mean is taken, and the mean of those is the rule's value, once
    `min_trials_required` trials have succeeded. The rule is fixed when a trial is suggested. Whoever runs the trial compares its
    best report so far with the rule exactly once, at its `start_step`-th report.
    """

    def __init__(self, experiment: Mapping[str, Any], reports: Reports) -> None:
        settings = settings_of(experiment["spec"]["earlyStopping"])
        self._objective = experiment["spec"]["objective"]
        self._least_trials = int(settings.get("min_trials_required", "3"))
        self._start_step = int(settings.get("start_step", "4"))
        self._reports = reports
        self._means: dict[str, float] = {}

    def rules(self, trials: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the early stopping rules for trials that are suggested now: one, or none as long as too few succeeded.

        Raises:
            ValueError: a report is not a number, or a succeeded trial has none.
        """
        metric = self._objective["objectiveMetricName"]
        for trial in trials:
            name, conditions = trial["metadata"]["name"], conditions_of(trial)
            if name not in self._means and conditions and conditions[-1]["type"] == "Succeeded":
                first = [float(value) for value in self._reports(name)[: self._start_step]]
                if not first:
                    raise ValueError(f"trial {name} has no report of {metric}")
                self._means[name] = sum(first) / len(first)
        if len(self._means) < self._least_trials:
            return []
        value = sum(self._means.values()) / len(self._means)
        comparison = "less" if self._objective["type"] == "maximize" else "greater"
        return [{"name": metric, "value": str(value), "comparison": comparison, "startStep": self._start_step}]
