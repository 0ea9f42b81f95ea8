"""What an experiment file may write: options, hyperparameters with defaults and ranges, search spaces. No torch here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from tuneoff.base.identity import is_finite
from tuneoff.base.space import Categorical, Float, IntegerLog, SearchSpace, extremes, stepped
from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError
from tuneoff_workloads.mnist_mlp.catalog import CATALOG, Dataset

Device = Literal["cpu", "cuda", "auto"]
DEVICES: tuple[Device, ...] = ("cpu", "cuda", "auto")
DEFAULTS: Mapping[str, Any] = {
    "dataset": "digits",
    "device": "cpu",
    "validation_size": None,
    "train_limit": None,
    "phases": False,
}
Activation = Literal["relu", "leaky_relu", "tanh", "sigmoid", "gelu"]
ACTIVATIONS: tuple[Activation, ...] = ("relu", "leaky_relu", "tanh", "sigmoid", "gelu")
OptimizerName = Literal["adam", "sgd"]
OPTIMIZERS: tuple[OptimizerName, ...] = ("adam", "sgd")
MAX_LAYERS = 16
MAX_WIDTH = 8192
MAX_BATCH = 65536
_WEIGHT_SECONDS = 7e-11  # of a weight and an image
_LAYER_SECONDS = 1e-5  # of a layer and a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options."""

    dataset: Dataset
    device: Device = "cpu"
    validation_size: int  # images taken from the training part for validation; the rest is trained on
    train_limit: int | None = None  # train on so many images only; None: on all
    phases: bool = False  # time load, forward, loss, backward, step, validate

    @property
    def train_size(self) -> int:
        """Number of images trained on."""
        available = self.dataset.train_size - self.validation_size
        return available if self.train_limit is None else min(available, self.train_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """What a configuration sets, with the defaults of what it leaves out.

    `weight_decay` is decoupled from the gradient in both optimizers: each step first multiplies every parameter by
    1 - learning_rate * weight_decay (AdamW, SGDW).
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int = 64
    hidden_widths: tuple[int, ...] = (128, 128)
    activation: Activation = "relu"
    dropout: float = 0.0  # probability of dropping a hidden unit, in training only
    optimizer: OptimizerName = "adam"
    momentum: float = 0.9  # of sgd


@dataclass(frozen=True, slots=True)
class _Rule:
    text: str
    allows: Callable[[Any], bool]


def _number(text: str, allows: Callable[[float], bool]) -> _Rule:
    return _Rule(f"a number {text}", lambda value: is_finite(value) and allows(value))


def _integer(low: int, high: int) -> _Rule:
    def allows(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return _Rule(f"an integer from {low} to {high}", allows)


def _one_of(names: Sequence[str]) -> _Rule:
    return _Rule(f"one of {', '.join(names)}", lambda value: value in names)


def _are_widths(value: Any) -> bool:
    is_sequence = isinstance(value, Sequence) and not isinstance(value, str) and 1 <= len(value) <= MAX_LAYERS
    return is_sequence and all(map(RULES["hidden_width"].allows, value))


RULES: dict[str, _Rule] = {
    "learning_rate": _number("above 0", lambda value: value > 0),
    "weight_decay": _number("of at least 0", lambda value: value >= 0),
    "batch_size": _integer(1, MAX_BATCH),
    "hidden_layers": _integer(1, MAX_LAYERS),
    "hidden_width": _integer(1, MAX_WIDTH),
    "hidden_widths": _Rule(f"a list of 1 to {MAX_LAYERS} integers from 1 to {MAX_WIDTH}", _are_widths),
    "activation": _one_of(ACTIVATIONS),
    "dropout": _number("from 0 to below 1", lambda value: 0 <= value < 1),
    "optimizer": _one_of(OPTIMIZERS),
    "momentum": _number("from 0 to below 1", lambda value: 0 <= value < 1),
}


def parse_options(options: Mapping[str, Any]) -> Options:
    """Check `options` and fill in the defaults: digits, device cpu, the dataset's own validation size, no limit, no phases.

    Raises:
        ExperimentError: an unknown name, or a value outside its range.
    """
    if problem := unknown_option("mnist_mlp", options, DEFAULTS):
        raise ExperimentError(problem)
    values = {**DEFAULTS, **options}
    _check_value("dataset", values["dataset"], _one_of(tuple(CATALOG)))
    dataset = CATALOG[values["dataset"]]
    if values["validation_size"] is None:
        values["validation_size"] = dataset.validation_size
    rules = {
        "device": _one_of(DEVICES),
        "validation_size": _integer(len(dataset.classes), dataset.train_size - len(dataset.classes)),
        "phases": _Rule("true or false", lambda value: isinstance(value, bool)),
    }
    if values["train_limit"] is not None:
        rules["train_limit"] = _integer(1, dataset.train_size)
    for name, rule in rules.items():
        _check_value(name, values[name], rule)
    return Options(**{**values, "dataset": dataset})


def parse_configuration(configuration: Mapping[str, Any]) -> Hyperparameters:
    """Return the hyperparameters of a configuration; `hidden_layers` times `hidden_width`, or the list `hidden_widths`.

    Raises:
        ExperimentError: an unknown name, a value outside its range, or both ways of giving the widths.
    """
    _check_names(configuration)
    for name, value in configuration.items():
        _check_value(name, value, RULES[name])
    values = dict(configuration)
    layers = values.pop("hidden_layers", 2)
    width = values.pop("hidden_width", 128)
    widths = values.pop("hidden_widths", None)
    return Hyperparameters(**values, hidden_widths=tuple(widths) if widths is not None else (width,) * layers)


def epoch_seconds(options: Options, hyperparameters: Hyperparameters) -> float:
    """Return about how long an epoch takes on one core of 2026 (`_WEIGHT_SECONDS` and `_LAYER_SECONDS` are of an AMD EPYC)."""
    sizes = (options.dataset.pixels, *hyperparameters.hidden_widths, len(options.dataset.classes))
    weights = sum(below * above for below, above in pairwise(sizes))
    images = options.train_size + options.validation_size / 3  # validation goes forward alone
    steps = math.ceil(options.train_size / hyperparameters.batch_size)
    return images * weights * _WEIGHT_SECONDS + steps * (len(sizes) - 1) * _LAYER_SECONDS


def default_space() -> SearchSpace:
    """Return the search space that is used where the experiment gives none."""
    return SearchSpace(
        {
            "learning_rate": Float(low=3e-4, high=1e-2, log=True),
            "weight_decay": Float(low=1e-6, high=1e-2, log=True),
            "batch_size": Categorical(choices=(32, 64, 128, 256), ordered=True),
            "hidden_layers": stepped(1, 3, 1, integer=True),
            "hidden_width": IntegerLog(low=32, high=256),
            "activation": Categorical(choices=("relu", "tanh", "gelu")),
            "dropout": stepped(0.0, 0.4, 0.1, integer=False),
        }
    )


def check_space(space: SearchSpace) -> None:
    """Raise ExperimentError where a dimension is unknown, reaches outside its range, or would have no effect."""
    _check_names(space.dimensions)
    for name, dimension in space:
        for value in extremes(dimension):
            _check_value(name, value, RULES[name])
        if isinstance(dimension, Float) and name in ("batch_size", "hidden_layers", "hidden_width"):
            raise ExperimentError(f"mnist_mlp: `{name}` must be {RULES[name].text}, but the space draws floats; use type int")
    if "momentum" in space.dimensions:
        optimizer = space.dimensions.get("optimizer")
        if optimizer is None or "sgd" not in extremes(optimizer):
            raise ExperimentError(
                "mnist_mlp: `momentum` has an effect with optimizer sgd only; remove it, or add sgd to `optimizer`"
            )


def _check_names(names: Mapping[str, Any]) -> None:
    unknown = sorted(set(names) - set(RULES))
    if unknown:
        raise ExperimentError(f"mnist_mlp has no hyperparameter {unknown[0]!r}; it knows {', '.join(RULES)}")
    if "hidden_widths" in names and ("hidden_layers" in names or "hidden_width" in names):
        raise ExperimentError("mnist_mlp takes either `hidden_widths` or `hidden_layers` and `hidden_width`, but got both")


def _check_value(name: str, value: Any, rule: _Rule) -> None:
    if not rule.allows(value):
        raise ExperimentError(f"mnist_mlp: `{name}` must be {rule.text}, but got {value!r}")
