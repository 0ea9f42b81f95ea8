"""The search space as Katib's services read it: all numbers are strings in the Experiment, and steps of integers default to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an Experiment. Numbers are still text: what cannot be read fails where it is used, as in the services."""

    name: str
    type: str  # int | double | categorical | discrete
    minimum: str
    maximum: str
    step: str
    values: tuple[str, ...]
    distribution: str  # uniform | logUniform | normal | logNormal


def parameters_of(experiment: Mapping[str, Any]) -> list[Parameter]:
    """Return the parameters of an Experiment in their order."""
    return [_parameter(given) for given in experiment["spec"].get("parameters", ())]


def _parameter(given: Mapping[str, Any]) -> Parameter:
    space, kind = given["feasibleSpace"], given.get("parameterType", "")
    step = space.get("step", "")
    return Parameter(
        name=given.get("name", ""),
        type=kind,
        minimum=space.get("min", ""),
        maximum=space.get("max", ""),
        step=step or ("1" if kind == "int" else ""),
        values=tuple(space.get("list", ())),
        distribution=space.get("distribution", "uniform"),
    )


def grid_values(parameter: Parameter) -> Sequence[str]:
    """Return the values of a parameter in a grid.

    Raises:
        ValueError: a double without a step, or text that is no number.
    """
    if parameter.type == "int":
        return [str(i) for i in range(int(parameter.minimum), int(parameter.maximum) + 1, int(parameter.step))]
    if parameter.type == "double":
        if not parameter.step:
            raise ValueError(f"Param {parameter.name} step is nil; For discrete search space, all parameters must include step")
        low, high, step = float(parameter.minimum), float(parameter.maximum), float(parameter.step)
        if not step > 0:
            raise ValueError(f"Param {parameter.name} step must be above 0")
        values: list[float] = []
        while (value := low + len(values) * step) <= high:
            values.append(value)
        return [str(value) for value in values]
    return parameter.values
