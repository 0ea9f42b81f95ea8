"""The contract of a workload: what a trial loads, trains, validates and tests. It knows nothing of frameworks."""

from __future__ import annotations

import contextlib
import inspect
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tuneoff.base.dimension import Categorical, Constant, Float, IntegerLog, Stepped, stepped
from tuneoff.base.identity import own_copy
from tuneoff.base.phases import items, phase
from tuneoff.base.process_state import kept
from tuneoff.base.space import SearchSpace
from tuneoff.base.targets import load_target
from tuneoff.errors import ExperimentError

__all__ = [
    "Categorical",
    "Configuration",
    "Constant",
    "DataDescription",
    "Float",
    "FunctionWorkload",
    "IntegerLog",
    "Mode",
    "Scalar",
    "Scores",
    "SearchSpace",
    "StateTensor",
    "Stepped",
    "TrainingEnded",
    "TrialSeeds",
    "Workload",
    "as_workload",
    "items",
    "phase",
    "stepped",
    "workload_at",
]

Mode = Literal["min", "max"]
Scalar = float | int | str | bool | None
Configuration = Mapping[str, Any]  # name -> JSON value, as core's search space defines it
NO_EPOCH = "the training ended before its first epoch; a trial needs the metrics of at least one"
VALUE = "value"  # the metric of a function that returns a number, where no objective is set


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSeeds:
    """Seeds of one trial: the data split (per run), and everything else (per run and configuration, never per index)."""

    split: int
    trial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateTensor:
    """One tensor of a checkpoint: safetensors dtype ("F32", "U8", "I64", ...), shape, and little-endian bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Scores of one model on the test split, and details (per-class report, confusion matrix) as JSON values."""

    values: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataDescription:
    """The data that a workload uses, for the record: name, version, SHA-256 of each file's content, size of all together.

    `paths` says where trials on this host read these files, so that core can look after a run whether they are still the same.
    """

    name: str
    version: str
    sha256: Mapping[str, str] = field(default_factory=dict)  # file -> digest of the content
    size_bytes: int = 0
    paths: Mapping[str, str] = field(default_factory=dict)  # file -> path; empty: nothing is looked at


class TrainingEnded(Exception):
    """`train_epoch` raises it where the training has ended by itself (early stopping) and this epoch is not to be trained.

    The trial is then completed, with the epochs before; without any it fails.
    """

    def __init__(self, text: str = "only `train_epoch` may raise it, in place of training an epoch") -> None:
        super().__init__(text)  # what is read where it is raised elsewhere


class Workload(ABC):
    """One training of one configuration, epoch by epoch; a new instance per attempt.

    Order of calls by core: `limit_threads`, `load`, then per epoch from 1: `train_epoch`, `validate`, where the value improved
    `state_dict`, and where the framework is told of it `to_report`. For the test, in a fresh process: `limit_threads`, `load`,
    `load_state_dict`, `test`. A retry of a workload that `restores_training`: `limit_threads`, `load`, `load_state_dict`, then
    the epochs after the checkpoint's. Last, however it ended: `close`.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    preload: ClassVar[tuple[str, ...]] = ()  # modules that a worker process imports before its first trial
    requirements: ClassVar[tuple[str, ...]] = ()  # what pip installs for it, e.g. ("torch>=2.6",): for an environment of its own
    metrics: ClassVar[Mapping[str, Mode]]  # what `validate` returns, and which direction is better; empty: the file says it
    default_metric: ClassVar[str]
    default_epochs: ClassVar[int]
    has_state: ClassVar[bool] = True  # False: no checkpoint, the test needs only the configuration
    restores_training: ClassVar[bool] = False  # True: a retry goes on from its state, as if training had never stopped
    has_test: ClassVar[bool] = True  # False: `test` is not called, and quality is judged on validation
    training_algorithm: ClassVar[str] = ""
    objective: str = ""  # the metric that the experiment optimizes, set before `load`; "": each metric may be
    planned_epochs: int = 0  # of a trial that nothing stops, set before `load`; 0: not known
    default_options: ClassVar[Mapping[str, Any] | None] = None  # all that `options` may name, for `tuneoff list workloads NAME`
    foreign_options: ClassVar[frozenset[str]] = frozenset()  # names that a bundle of somebody else may set, to numbers and words

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Check `options` (raise ExperimentError with rule, value and way out); read no data and import nothing heavy."""
        self.options = options

    @classmethod
    @abstractmethod
    def default_space(cls) -> SearchSpace:
        """Return the search space that is used where the experiment gives none."""

    def check_space(self, space: SearchSpace) -> None:  # noqa: B027
        """Raise ExperimentError where the space has a dimension or value that the workload does not understand."""

    @classmethod
    def refuse_foreign(cls, options: Mapping[str, Any]) -> str | None:
        """Return why these options are not obeyed where a bundle of somebody else gives them, or None.

        All of them are in `foreign_options`. Refuse what acts beyond a trial's own result: programs that are started, files that
        are made, memory that is taken, processes that are ended.
        """
        return None

    def prepare(self) -> DataDescription:
        """Make the data available on this host, once per matrix and before any run; check its content.

        Raises:
            DataError: a file is missing, truncated or corrupted and cannot be obtained.
        """
        return DataDescription(name=self.name, version=self.version)

    def limit_threads(self, threads: int) -> None:  # noqa: B027
        """Limit the compute threads of this process, whatever a framework exported."""

    @abstractmethod
    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        """Load data and build the model."""

    @abstractmethod
    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        """Train one epoch (counted from 1) and return training metrics, e.g. `train_loss`.

        Raises:
            TrainingEnded: the training ended by itself after the epoch before: this one was not trained.
        """

    @abstractmethod
    def validate(self) -> Mapping[str, float]:
        """Return the validation metrics; leaves the model's training state as it was."""

    def to_report(self, epoch: int, metrics: Mapping[str, float]) -> Sequence[tuple[int, Mapping[str, float]]]:
        """Return what the framework is told after an epoch, in this order; this default: the epoch and its metrics, once.

        An override tests what a framework makes of other reports. The record has the epoch as it was.
        """
        return ((epoch, metrics),)

    def test(self) -> Scores:
        """Score the loaded state on the test split; a workload with `has_test` has its own."""
        raise NotImplementedError

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        """Return tensors and text that restore model, optimizer and random generators; core adds the epoch."""
        return {}, {}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:  # noqa: B027
        """Restore what `state_dict` returned."""

    def cases(self) -> Mapping[str, Iterable[Hashable]]:
        """Return which cases each split of the data has (`train`, `validation`, `test`), after `load`; empty: it cannot tell."""
        return {}

    def close(self) -> None:  # noqa: B027
        """Release what `load` took: processes, files. Called once; not called where the process itself is killed."""

    def cost(self, configuration: Configuration, epochs: int) -> float | None:
        """Return what training a configuration through so many epochs costs, above 0, in a unit of its own; None: it cannot tell.

        It is called without `load`, for samplers that take a cost.
        """
        return None

    def quality_margin(self) -> float | None:
        """Return the smallest difference of the selected model's test score that matters, for controls; None: it has none."""
        return None

    def device(self) -> str:
        """Return the device that this instance trains on: "cpu" or "cuda:<name>"."""
        return "cpu"


class FunctionWorkload(Workload):
    """Calls `function(configuration, seed)`, or `function(configuration)`, with the workload's options as further arguments.

    What it yields, or returns, are the metrics of an epoch by name; a number is the objective's. Where it ends, the training has
    ended. It has no test and no state, and as it does not tell training and validation apart, an epoch's time counts as
    training.
    """

    function: ClassVar[Callable[..., Any]]
    metrics: ClassVar[Mapping[str, Mode]] = {}
    default_metric: ClassVar[str] = "validation_accuracy"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    has_test: ClassVar[bool] = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._seeded = self._check_signature()
        self._call: Callable[[], Any] | None = None
        self._epochs: Iterator[Any] = iter(())
        self._metrics: dict[str, float] = {}

    @classmethod
    def default_space(cls) -> SearchSpace:
        raise ExperimentError(f"the function {cls.name!r} has no search space of its own; write `search_space` in the file")

    @classmethod
    def refuse_foreign(cls, options: Mapping[str, Any]) -> str | None:
        return "it calls a function, which may do anything"

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        seed = {"seed": seeds.trial} if self._seeded else {}
        self._call = lambda: self.function(dict(configuration), **seed, **self.options)

    def _check_signature(self) -> bool:
        """Return whether the function takes a seed.

        Raises:
            ExperimentError: it cannot be called with a configuration and these options.
        """
        function = self.function
        for called in (function, getattr(function, "__call__", None)):  # noqa: B004  # of an object too
            if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
                rule = f"a training must return or yield its metrics, but {self.name!r} is asynchronous"
                raise ExperimentError(f"{rule}; call it with asyncio.run(...) in a function of its own")
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # C code need not tell it
            return False
        takes_seed = "seed" in signature.parameters
        rule = f"a training must take the configuration, and also `seed` and what `options` names, but {self.name}{signature}"
        if takes_seed and "seed" in self.options:
            raise ExperimentError(f"{rule} is given `seed` by tuneoff and by `options`; call the option something else")
        try:
            signature.bind({}, **({"seed": 0} if takes_seed else {}), **self.options)
        except TypeError as error:
            raise ExperimentError(f"{rule} does not: {error}; write def {self.name}(configuration, seed)") from None
        return takes_seed

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if self._call is not None:
            result, self._call = self._call(), None
            self._epochs = result if isinstance(result, Iterator) else iter([result])
        try:
            values = next(self._epochs)
        except StopIteration:
            raise TrainingEnded from None
        self._metrics = dict(values) if isinstance(values, Mapping) else {self.objective or VALUE: values}
        return {}

    def validate(self) -> Mapping[str, float]:
        return self._metrics

    def close(self) -> None:
        if isinstance(self._epochs, types.GeneratorType):
            self._epochs.close()


def workload_at(target: str, *, is_training: bool = False) -> type[Workload]:
    """Return the workload at "module:Name"; a function there becomes one.

    `is_training`: it trains in this process, so what its import changes of that stays.

    Raises:
        PluginError: the module or the name does not exist, or fails while importing.
    """
    is_imported = target.partition(":")[0] in sys.modules
    with contextlib.nullcontext() if is_training or is_imported else kept():
        workload: type[Workload] = as_workload(load_target(target))
    return workload


def new_workload(target: str, options: Mapping[str, Any]) -> Workload:
    """Return an instance of the workload at "module:Name", with options of its own.

    Raises: as `workload_at`.
    """
    return workload_at(target)(own_copy(options))


def as_workload(loaded: Any) -> Any:
    """Return a workload that calls what was found, if that is a function; else what was found."""
    if isinstance(loaded, type) or not callable(loaded):
        return loaded
    name = getattr(loaded, "__name__", type(loaded).__name__)
    return type(name, (FunctionWorkload,), {"function": staticmethod(loaded), "name": name, "__doc__": loaded.__doc__})
