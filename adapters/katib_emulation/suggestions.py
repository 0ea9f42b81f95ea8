"""What Katib's algorithm services answer: the configurations of new trials, and the rules for stopping trials early.

They are `random` (Katib: hyperopt), `grid` (Katib: Optuna's GridSampler) and `medianstop`. The distributions and settings are
Katib's. The random numbers are not: with `random_state` the n-th suggestion of an experiment is the same whatever the batches
were in which suggestions were asked for. Katib's hyperopt service draws a new seed for every call, so its sequence depends on how
many slots were free. Without `random_state` the seed comes from the experiment's uid. All numbers are strings in the Experiment.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from katib_emulation.objects import conditions_of, has_condition

Configuration = dict[str, str]
Parameter = Mapping[str, Any]
"""An entry of `spec.parameters`. What cannot be read of it fails where it is used, as in the services."""


Algorithm = Callable[[int, Sequence[Configuration]], Configuration]
"""Gives the configuration with a number (from 0), with every value as text, by those of all ended trials.

It raises ValueError where the space cannot be drawn from: text that is not a number, a logarithm of 0, an empty list.
"""


def algorithm_for(experiment: Mapping[str, Any]) -> Algorithm:
    """Return the algorithm of an Experiment, `random` or `grid`.

    Raises:
        ValueError: it knows no such setting, or cannot work on this space.
    """
    spec = experiment["spec"]
    settings = settings_of(spec["algorithm"], random_state=0)
    seed, parameters = settings.get("random_state") or experiment["metadata"]["uid"], spec["parameters"]

    def suggest(index: int, ended: Sequence[Configuration]) -> Configuration:
        draws = random.Random(derived(seed, "random", index))
        return {parameter["name"]: draw(parameter, draws) for parameter in parameters}

    if spec["algorithm"]["algorithmName"] == "random":
        return suggest
    cells = cells_of(parameters)
    random.Random(derived(seed, "grid", 0)).shuffle(cells)
    if (most := spec.get("maxTrialCount", 0)) > len(cells):
        raise ValueError(f"Max Trial Count: {most} > all possible search combinations: {len(cells)}")

    def visit(index: int, ended: Sequence[Configuration]) -> Configuration:
        """Give each combination once; once all were given, any whose trial has not succeeded (as in Optuna)."""
        if index < len(cells):
            return cells[index]
        open_ = [cell for cell in cells if cell not in ended]
        return random.Random(derived(seed, "grid", index)).choice(open_ or cells)

    return visit


def settings_of(part: Mapping[str, Any], **least: int) -> dict[str, str]:
    """Return the settings of `spec.algorithm` or `spec.earlyStopping` by name; the last one counts.

    `least`: the settings that the service knows, with their least values.

    Raises:
        ValueError: it does not know one, or its value is too small.
    """
    settings = {setting.get("name", ""): setting.get("value", "") for setting in part.get("algorithmSettings", ())}
    for name, value in settings.items():
        if name not in least:
            raise ValueError(f"unknown setting {name} for algorithm {part['algorithmName']}")
        if not value.isdecimal() or int(value) < least[name]:
            raise ValueError(f"{name} must be a whole number of at least {least[name]}, but is {value}")
    return settings


def derived(*parts: object, bits: int = 64) -> int:
    """Return a number of `bits` bits that depends on all parts, and on nothing else."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)


def draw(parameter: Parameter, draws: random.Random) -> str:
    """Return one value of the parameter as text, with the distributions of Katib's hyperopt service and their peculiarities.

    A parameter with a step (an integer always has one: 1) is drawn as `round(draw / step) * step`: values are multiples of the
    step, not of min + k * step; both end points get half the mass of the others; and the result can leave [min, max].

    Raises:
        ValueError: the parameter cannot be drawn from.
    """
    kind, space = parameter["parameterType"], parameter["feasibleSpace"]
    if kind == "categorical":
        if not space.get("list"):
            raise ValueError(f"parameter {parameter['name']} has an empty list")
        return str(draws.choice(space["list"]))
    low, high = float(space["min"]), float(space["max"])
    is_log = space.get("distribution") == "logUniform"
    value = math.exp(draws.uniform(math.log(low), math.log(high))) if is_log else draws.uniform(low, high)
    if step := float(space.get("step") or kind == "int"):
        value = round(value / step) * step
    return str(int(value)) if kind == "int" else str(value)


def cells_of(parameters: Sequence[Parameter]) -> list[Configuration]:
    """Return all combinations.

    Raises:
        ValueError: a double, or text that is not a number.
    """
    axes: list[Sequence[str]] = []
    for parameter in parameters:
        space = parameter["feasibleSpace"]
        if parameter["parameterType"] == "double":
            raise ValueError(f"Param {parameter['name']}: the emulated grid has integers and categories only")
        axes.append(space.get("list", ()))
        if parameter["parameterType"] == "int":
            axes[-1] = list(map(str, range(int(space["min"]), int(space["max"]) + 1, int(space.get("step") or 1))))
    names = [parameter["name"] for parameter in parameters]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*axes)]


def ended_of(trials: Iterable[Mapping[str, Any]]) -> list[Configuration]:
    """Return what a service is told of these trials.

    Trials whose metrics are unavailable are left out; failed ones are sent, and ignored by every service.

    Raises:
        ValueError: a value is not a number (the collector makes "" of `nan`): after it the service answers no call, as in Katib.
    """
    ended = []
    for trial in trials:
        conditions, value = conditions_of(trial), objective_value(trial)
        if has_condition(trial, "MetricsUnavailable") or not conditions or value is None:
            continue
        if conditions[-1]["type"] in ("Succeeded", "EarlyStopped"):
            float(value)
            ended.append({each["name"]: each["value"] for each in trial["spec"].get("parameterAssignments", ())})
    return ended


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

    def __init__(self, experiment: Mapping[str, Any], reports: Callable[[str], Sequence[str]]) -> None:
        """`reports`: gives the objective's values of a trial, as text, in the order of time."""
        settings = settings_of(experiment["spec"]["earlyStopping"], min_trials_required=1, start_step=1)
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
