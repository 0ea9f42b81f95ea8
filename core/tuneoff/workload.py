"""The contract of a workload: what a trial loads, trains, validates and tests. It knows nothing of frameworks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from tuneoff.base.dimension import Categorical, Constant, Float, IntegerLog, Stepped, stepped
from tuneoff.base.space import SearchSpace

__all__ = [
    "Categorical",
    "Configuration",
    "Constant",
    "DataDescription",
    "Float",
    "IntegerLog",
    "Mode",
    "Scalar",
    "Scores",
    "SearchSpace",
    "StateTensor",
    "Stepped",
    "TrialSeeds",
    "Workload",
    "stepped",
]

Mode = Literal["min", "max"]
Scalar = float | int | str | bool | None
Configuration = Mapping[str, Any]  # name -> JSON value, as core's search space defines it


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


class Workload(ABC):
    """One training of one configuration, epoch by epoch; a new instance per attempt.

    Order of calls by core: `limit_threads`, `load`, then per epoch from 1: `train_epoch`, `validate`, and where the value
    improved `state_dict`. For the test, in a fresh process: `limit_threads`, `load`, `load_state_dict`, `test`. Last, however it
    ended: `close`.
    """

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    preload: ClassVar[tuple[str, ...]] = ()  # modules that a worker process imports before its first trial
    metrics: ClassVar[Mapping[str, Mode]]  # what `validate` returns, and which direction is better; empty: the file says it
    default_metric: ClassVar[str]
    default_epochs: ClassVar[int]
    has_state: ClassVar[bool] = True  # False: no checkpoint, the test needs only the configuration
    has_test: ClassVar[bool] = True  # False: `test` is not called, and quality is judged on validation
    training_algorithm: ClassVar[str] = ""
    default_options: ClassVar[Mapping[str, Any] | None] = None  # all that `options` may name, for `tuneoff workloads NAME`

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

        Refuse what acts beyond a trial's own result: files that are made, memory that is taken, processes that are ended. Unless
        a workload knows better, texts that look like a path or an address are refused.
        """
        suspects = (f"option {name!r} may be a path: {text!r}" for name, value in options.items() for text in _paths(value))
        return next(suspects, None)

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
        """Train one epoch (counted from 1) and return training metrics, e.g. `train_loss`."""

    @abstractmethod
    def validate(self) -> Mapping[str, float]:
        """Return the validation metrics; leaves the model's training state as it was."""

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

    def quality_margin(self) -> float | None:
        """Return the smallest difference of the selected model's test score that matters, for controls; None: it has none."""
        return None

    def device(self) -> str:
        """Return the device that this instance trains on: "cpu" or "cuda:<name>"."""
        return "cpu"


def _paths(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value that look like a path or an address."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, str):
        if value.startswith(("~", "..")) or "/" in value or "\\" in value:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _paths(item)
