"""The base of every model of the experiment file, and the one line that a broken rule becomes.

The dimensions of a search space as people write them become dimensions of core.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from tuneoff.base.numbers import exact_text
from tuneoff.base.space import Categorical, Constant, Dimension, Float, IntegerLog, stepped
from tuneoff.base.targets import nearest
from tuneoff.errors import ExperimentError
from tuneoff.experiment.yaml_reader import scalar_tag

Name = Annotated[str, Field(min_length=1)]
PlainName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
_SHOWN = 60  # characters of a value in an error
_RULES = {
    "missing": "is required",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": "must be a mapping of keys to values",
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "finite_number": "must be finite",
    "string_pattern_mismatch": "must be letters, digits, `.`, `_` and `-` after a letter or digit",
    "union_tag_not_found": "needs a `type`: float, int, categorical, ordered or constant",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
    "string_too_long": ("max_length", "no longer than"),
    "too_long": ("max_length", "no longer than"),
}
_UNITS = {"_seconds": "seconds, e.g. 3600", "_mb": "megabytes, e.g. 600", "_percent": "a percentage, e.g. 5"}
_KEYS = {  # of a part, what a bare value most likely means
    "objective": "metric",
    "budget": "trials",
    "workers": "count",
    "timeouts": "trial_seconds",
    "failures": "retries",
    "analysis": "primary_metric",
}
_TEXTS = ("metric", "primary_metric")
LARGEST_WHOLE = 2**53  # of a float: each integer up to it is one
_SWITCHES = {**dict.fromkeys(("yes", "on", "y"), "true"), **dict.fromkeys(("no", "off", "n"), "false")}
_BARE = {"int_type": ("int",), "float_type": ("int", "float"), "bool_type": ("bool",)}  # types of YAML that fit


class Part(BaseModel):
    """A mapping in the file: unknown keys and wrong types are refused, nothing is converted but an integer to a float."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)
    resolved_keys: ClassVar[tuple[str, ...]] = ()  # that people may write, and that are gone before the check
    refused_keys: ClassVar[Mapping[str, str]] = {}  # that other tools have, and what to do instead

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        """Name the nearest known key for an unknown one; `extra="forbid"` would only say that it is extra."""
        if isinstance(data, Mapping) and cls.model_config.get("extra") == "forbid":
            allowed = known_keys(cls)
            for key in data:
                if key not in allowed:
                    allowed += cls.resolved_keys
                    instead = cls.refused_keys.get(key) or f"known: {', '.join(allowed)}"
                    text = f"unknown key {key!r}{nearest(key, allowed)}; {instead}"
                    raise PydanticCustomError("unknown_key", "{text}", {"text": text})
        return data


def known_keys(part: type[BaseModel]) -> list[str]:
    """Return the keys of a part as people write them."""
    keys: list[str] = []
    for name, info in part.model_fields.items():
        choices = getattr(info.validation_alias, "choices", None)
        keys.extend(str(choice) for choice in choices or [info.validation_alias or name])
    return keys


def one_line(error: ValidationError) -> str:
    """Return the first broken rule of a validation: place, rule, value."""
    details = error.errors(include_url=False)[0]
    where = ".".join(_place(details["loc"]))
    rule = _rule(details)
    return " ".join((f"{where}: {rule}" if where else rule).split())


def _place(location: tuple[int | str, ...]) -> list[str]:
    parts = [str(item) for item in location if not str(item).startswith("<")]  # <...>: tags of unions
    if len(parts) > 2 and parts[0] == "search_space":
        del parts[2]  # the tag of the dimension's type
    return parts


def _rule(details: ErrorDetails) -> str:
    kind, context, value = details["type"], details.get("ctx", {}), details["input"]
    if kind == "unknown_key":
        return details["msg"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return _RULES[kind]
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        rule = f"must be {words} {exact_text(context[name])}"
    elif kind == "literal_error":
        rule = f"must be one of {context['expected']}"
    elif kind == "union_tag_invalid":
        tag, expected = str(context["tag"]), str(context["expected_tags"])
        return f"`type` must be one of {expected}, but got {tag!r}{nearest(tag, expected.replace(chr(39), '').split(', '))}"
    else:
        rule = _RULES.get(kind, details["msg"])
    return f"{rule}, but got {show(value)}{_way_out(kind, value, '.'.join(_place(details['loc'])))}"


def show(value: Any) -> str:
    """Return a value as an error shows it: null, true and false as YAML has them, and cut where it is long."""
    text = {None: "null", True: "true", False: "false"}.get(value, "") if value is None or isinstance(value, bool) else ""
    text = text or repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _way_out(kind: str, value: Any, where: str) -> str:
    if kind == "string_type":
        return "; put it in quotes if it is meant as text"
    if kind in _BARE and isinstance(value, str) and scalar_tag(value) in _BARE[kind]:
        return "; write it without quotes"
    if kind in _BARE and (text := _meant(kind, value)) is not None:
        return f"; write {text}"
    if kind in ("int_type", "float_type"):
        unit = next((text for ending, text in _UNITS.items() if where.endswith(ending)), "")
        return f"; write {unit}" if unit else ""
    if kind == "list_type":
        return _way_to_list(value, where)
    if kind.startswith("model_"):
        return _way_to_mapping(value, where)
    return ""


def _meant(kind: str, value: Any) -> str | None:
    """Return what a value that other tools and tongues write means: no (YAML 1.1), 1e3 of an integer, 1_000, 0,5 and 50%."""
    if kind == "bool_type":
        return _SWITCHES.get(value.lower()) if isinstance(value, str) else None
    if isinstance(value, float) and value.is_integer() and abs(value) < LARGEST_WHOLE:
        return str(int(value))
    if not isinstance(value, str) or len(value) > _SHOWN:
        return None
    text = value.replace("_", "").replace(",", ".")
    if text.endswith("%") and scalar_tag(text[:-1]) in ("int", "float"):
        text = str(Decimal(text[:-1]).scaleb(-2))
    return text if text != value and scalar_tag(text) in _BARE[kind] else None


def _way_to_list(value: Any, where: str) -> str:
    if isinstance(value, Mapping):
        return "; begin each entry with a dash"
    count = value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
    if where == "seeds":
        return f"; write [{count}] or {{count: {count}}}" if count else "; write a list, e.g. [0, 1], or {count: 2}"
    if where == "configurations":
        return f"; write {{sample: {count or 20}}}, or a list of mappings"
    if where == "adapters" or where.endswith((".choices", ".values")):
        return f"; write [{value}]" if _is_short(value) else ""
    return ""


def _way_to_mapping(value: Any, where: str) -> str:
    if isinstance(value, bool) or not _is_short(value):
        return ""
    key = _KEYS.get(where, "")
    if key and isinstance(value, str if key in _TEXTS else int):
        return f"; write {{{key}: {value}}}"
    if where.startswith("search_space."):
        return f"; write {{type: constant, value: {value}}}"
    return ""


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float) and len(str(value)) <= _SHOWN


def _finite(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse numbers that are not finite anywhere in free options: they have no JSON form."""
    for name, option in options.items():
        odd = _not_finite(option)
        if odd is not None:
            raise ValueError(f"option `{name}` must be a finite number, but got {odd!r}")
    return options


def _not_finite(value: Any) -> float | None:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return next((odd for odd in map(_not_finite, parts) if odd is not None), None)
    return value if isinstance(value, float) and not math.isfinite(value) else None


Options = Annotated[dict[str, Any], AfterValidator(_finite)]  # any JSON values, with finite numbers


class _DimensionPart(Part, ABC):
    """A dimension; checked by building core's own one."""

    refused_keys: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("if", "when", "condition", "conditions", "depends_on", "parent"),
        "there are no conditional dimensions: remove it, and let the training ignore the value where it has no meaning",
    )

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
