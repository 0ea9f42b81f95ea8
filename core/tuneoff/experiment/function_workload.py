"""A function as a workload: a generator that yields its metrics once per epoch, or a function that returns a value."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from tuneoff.base.space import SearchSpace
from tuneoff.base.targets import load_target
from tuneoff.errors import ExperimentError
from tuneoff.workload import Configuration, Mode, TrialSeeds, Workload

VALUE = "value"  # the metric of a function that returns a number


class FunctionWorkload(Workload):
    """Calls `function(configuration, seed)`, or `function(configuration)`, with the workload's options as further arguments.

    What it yields, or returns, are the metrics of an epoch by name; a number is the metric `value`. It has no test and no state,
    and as it does not tell training and validation apart, an epoch's time counts as training.
    """

    function: ClassVar[Callable[..., Any]]
    metrics: ClassVar[Mapping[str, Mode]] = {}
    default_metric: ClassVar[str] = "validation_accuracy"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    has_test: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._call: Callable[[], Any] | None = None
        self._epochs: Iterator[Any] = iter(())
        self._metrics: dict[str, float] = {}

    @classmethod
    def default_space(cls) -> SearchSpace:
        raise ExperimentError(f"the function {cls.name!r} has no search space of its own; write `search_space` in the file")

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        import inspect  # half the time that a trial's process needs for all its other imports

        seed = (seeds.trial,) if "seed" in inspect.signature(self.function).parameters else ()
        self._call = lambda: self.function(dict(configuration), *seed, **self.options)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if self._call is not None:
            found, self._call = self._call(), None
            self._epochs = found if isinstance(found, Iterator) else iter([found])
        try:
            values = next(self._epochs)
        except StopIteration:
            rule = f"a function must yield once per epoch, but {self.name!r} ended after {epoch - 1}"
            raise ExperimentError(f"{rule}; set `budget.epochs_per_trial` to that") from None
        self._metrics = dict(values) if isinstance(values, Mapping) else {VALUE: values}
        return {}

    def validate(self) -> Mapping[str, float]:
        return self._metrics

    def close(self) -> None:
        if isinstance(self._epochs, types.GeneratorType):
            self._epochs.close()


def workload_at(target: str) -> type[Workload]:
    """Return the workload at "module:Name"; a function there becomes one.

    Raises:
        PluginError: the module or the name does not exist, or fails while importing.
    """
    found: type[Workload] = as_workload(load_target(target))
    return found


def as_workload(found: Any) -> Any:
    """Return a workload that calls what was found, if that is a function; else what was found."""
    if isinstance(found, type) or not callable(found):
        return found
    name = getattr(found, "__name__", type(found).__name__)
    return type(name, (FunctionWorkload,), {"function": staticmethod(found), "name": name, "__doc__": found.__doc__})
