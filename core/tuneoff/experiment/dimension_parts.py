"""The dimensions of a search space as people write them, and the dimensions of core that they become."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from tuneoff.base.space import Categorical, Constant, Dimension, Float, IntegerLog, stepped
from tuneoff.errors import ExperimentError
from tuneoff.experiment.part import Part


class _DimensionPart(Part, ABC):
    """A dimension; checked by building core's own one."""

    @abstractmethod
    def to_core(self) -> Dimension:
        """Return core's dimension; raise ExperimentError where there is none."""

    @model_validator(mode="after")
    def _builds(self) -> _DimensionPart:
        try:
            self.to_core()
        except ExperimentError as error:  # pydantic adds the place in the file to a ValueError only
            raise ValueError(str(error)) from error
        return self


class FloatPart(_DimensionPart):
    """A real number in [low, high]: uniform, log-uniform, or `low`, `low + step`, ... up to `high`."""

    type: Literal["float"]
    low: float
    high: float
    log: bool = False
    step: float | None = None

    def to_core(self) -> Dimension:
        if self.step is None:
            return Float(low=self.low, high=self.high, log=self.log)
        _refuse_log_step(self.log, self.step)
        return stepped(self.low, self.high, self.step, integer=False)


class IntPart(_DimensionPart):
    """An integer in [low, high]: uniform, uniform by `step`, or with a uniform logarithm."""

    type: Literal["int"]
    low: int
    high: int
    log: bool = False
    step: int | None = None

    def to_core(self) -> Dimension:
        if self.log:
            _refuse_log_step(self.log, self.step)
            return IntegerLog(low=self.low, high=self.high)
        return stepped(self.low, self.high, 1 if self.step is None else self.step, integer=True)


class CategoricalPart(_DimensionPart):
    """One of `choices`, equally likely and without order; any JSON values."""

    type: Literal["categorical"]
    choices: list[Any] = Field(min_length=1)

    def to_core(self) -> Dimension:
        return Categorical(choices=tuple(self.choices))


class OrderedPart(_DimensionPart):
    """One of `values`, equally likely, from least to greatest; any JSON values."""

    type: Literal["ordered"]
    values: list[Any] = Field(min_length=1)

    def to_core(self) -> Dimension:
        return Categorical(choices=tuple(self.values), ordered=True)


class ConstantPart(_DimensionPart):
    """A fixed value in every configuration."""

    type: Literal["constant"]
    value: Any

    def to_core(self) -> Dimension:
        return Constant(value=self.value)


DimensionPart = Annotated[
    FloatPart | IntPart | CategoricalPart | OrderedPart | ConstantPart,
    Field(discriminator="type"),
]


def _refuse_log_step(log: bool, step: float | None) -> None:
    if log and step is not None:
        raise ExperimentError(
            f"`log` and `step` exclude each other, but got log=true, step={step}; list the points as `type: ordered`"
        )
