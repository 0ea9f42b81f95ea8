"""Dataclasses and structures from JSON values: the rules follow from the annotations of the fields, and so does the JSON Schema.

Unknown keys and wrong types are refused; nothing is converted but an integer to a float.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from tuneoff.base.numbers import exact_text
from tuneoff.base.targets import nearest
from tuneoff.errors import ExperimentError

Read = Callable[[Any], Any]
SHOWN = 60  # characters of a value in an error
NOT_JSON = object()  # in the annotation of a field: it is in no JSON form
_RULES: Mapping[Any, str] = {
    bool: "must be true or false",
    int: "must be an integer",
    float: "must be a number",
    str: "must be text",
    list: "must be a list",
    dict: "must be a mapping of keys to values",
}


class Refused(ValueError):
    """A broken rule: the keys that lead to its place, the rule, and the value (none, where the rule says it).

    `wanted`: the type, where the value has another one.
    """

    def __init__(self, rule: str, *values: Any, wanted: Any = None) -> None:
        super().__init__(rule)
        self.rule, self.values, self.wanted = rule, values, wanted
        self.keys: tuple[str | int, ...] = ()

    def under(self, key: str | int) -> Refused:
        """Return the error as it is one level higher."""
        self.keys = (key, *self.keys)
        return self

    @property
    def where(self) -> str:
        """The keys with dots between them; "" for the whole value."""
        return ".".join(map(str, self.keys))

    def __str__(self) -> str:
        text = f"{self.rule}, but got {show(self.values[0])}" if self.values else self.rule
        return " ".join((f"{self.where}: {text}" if self.keys else text).split())


class Written(NamedTuple):
    """In an annotation: makes JSON values of the annotated type of what people write; raises Refused where it cannot."""

    change: Callable[[Any], Any]


def _finite(options: Mapping[str, Any]) -> None:
    """Refuse numbers that are not finite anywhere in free options: they have no JSON form."""
    for name, option in options.items():
        odd = _not_finite(option)
        if odd is not None:
            raise Refused(f"option `{name}` must be a finite number, but got {odd!r}")


def _not_finite(value: Any) -> float | None:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return next((odd for odd in map(_not_finite, parts) if odd is not None), None)
    return value if isinstance(value, float) and not math.isfinite(value) else None


Options = Annotated[Mapping[str, Any], _finite]  # any JSON values, with finite numbers


def show(value: Any) -> str:
    """Return a value as an error shows it: null, true and false as YAML has them, and cut where it is long."""
    text = {None: "null", True: "true", False: "false"}.get(value, "") if value is None or isinstance(value, bool) else ""
    text = text or repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def read(kind: Any, value: Any, *, exact: bool = False) -> Any:
    """Return a value of an annotation, a dataclass or a structure from JSON values; what has a default may be absent.

    An annotation may have a `msgspec.Meta` with limits, a `Written`, and checks: functions that raise Refused. Of a union the
    part is taken where the value is a mapping; of several parts, the one whose tag is its `type`. Of a class, `is_named`: text is
    its first field; `other_keys`: the field that has the keys which are no fields; `refused_keys`: what to do instead.

    Args:
        exact: as tuneoff stored it, not as people write it. An int stays an int where a float may be: written again it has the
            same text, and so the same digest.

    Raises:
        Refused: the first broken rule.
    """
    return _reader(kind, exact)(value)


@functools.cache
def _reader(hint: Any, exact: bool) -> Read:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return functools.partial(_annotated, _reader(arguments[0], exact), arguments[1:])
    if hint is Any:
        return lambda value: value
    if origin in (Union, UnionType):
        structures = [member for member in arguments if isinstance(member, type) and member not in (NoneType, *_RULES)]
        others = [member for member in arguments if member is not NoneType and member not in structures]
        return functools.partial(_union, structures, others, NoneType in arguments, exact)
    if origin is Literal:
        return functools.partial(_one_of, arguments)
    if origin in (list, tuple):
        return functools.partial(_items, origin, _reader(arguments[0], exact))
    if origin in (dict, Mapping):
        return functools.partial(_mapping, *(_reader(argument, exact) for argument in arguments))
    if hint in _RULES:
        return functools.partial(_scalar, hint, exact)
    return functools.partial(_part, hint, exact)


def _annotated(inner: Read, extras: Sequence[Any], value: Any) -> Any:
    for extra in extras:
        value = extra.change(value) if isinstance(extra, Written) else value
    result = inner(value)
    for extra in extras:
        if isinstance(extra, msgspec.Meta) and (rule := _broken(extra, result)):
            raise Refused(rule, value)
        if callable(extra):
            extra(result)
    return result


def _broken(limits: msgspec.Meta, value: Any) -> str | None:
    """Return the rule that a value breaks, or None."""
    if limits.min_length is not None and len(value) < limits.min_length:
        return "must not be empty"
    for bound, is_kept, words in (
        (limits.gt, operator.gt, "greater than"),
        (limits.ge, operator.ge, "at least"),
        (limits.lt, operator.lt, "less than"),
        (limits.le, operator.le, "at most"),
    ):
        if bound is not None and not is_kept(value, bound):
            return f"must be {words} {exact_text(bound)}"
    if limits.max_length is not None and len(value) > limits.max_length:
        return f"must be no longer than {limits.max_length}"
    return f"must be {limits.description}" if limits.pattern and not re.fullmatch(limits.pattern, value) else None


def _union(structures: Sequence[Any], others: Sequence[Any], or_none: bool, exact: bool, value: Any) -> Any:
    if value is None and or_none:
        return None
    if isinstance(value, str) and str in others:
        return value
    free = [member for member in others if get_origin((get_args(member) or (member,))[0]) is dict]
    if free and isinstance(value, dict):
        return _reader(free[0], exact)(value)
    if others and not (structures and isinstance(value, dict)):
        return _reader(others[-1], exact)(value)
    if len(structures) == 1:
        return _reader(structures[0], exact)(value)
    by_tag = {structure.__struct_config__.tag: structure for structure in structures}
    if not isinstance(value, dict):
        raise Refused(_RULES[dict], value, wanted=dict)
    if "type" not in value:
        from tuneoff.base.format import listed  # only a refusal needs it

        raise Refused(f"needs a `type`: {listed(by_tag, 'or')}", value)
    tag = str(value["type"])
    if tag not in by_tag:
        raise Refused(f"`type` must be one of {', '.join(map(repr, by_tag))}, but got {tag!r}{nearest(tag, by_tag)}")
    return _reader(by_tag[tag], exact)(value)


def _one_of(choices: tuple[Any, ...], value: Any) -> Any:
    if value in choices and not isinstance(value, bool):
        return value
    from tuneoff.base.format import listed  # only a refusal needs it

    raise Refused(f"must be one of {listed(map(repr, choices), 'or')}", value)


def _items(origin: type, item: Read, value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise Refused(_RULES[list], value, wanted=list)
    return origin(_under(index, item, each) for index, each in enumerate(value))


def _mapping(key: Read, item: Read, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(_RULES[dict], value, wanted=dict)
    return {_under(name, key, name): _under(name, item, each) for name, each in value.items()}


def _under(key: str | int, read_it: Read, value: Any) -> Any:
    try:
        return read_it(value)
    except Refused as error:
        raise error.under(key)  # noqa: B904  # it is the same error


def _scalar(kind: type, exact: bool, value: Any) -> Any:
    accepted: Any = (int, float) if kind is float else kind
    if not isinstance(value, accepted) or isinstance(value, bool) is not (kind is bool):
        raise Refused(_RULES[kind], value, wanted=kind)
    if kind is not float:
        return value
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Refused("must be finite", value)
    return value if exact else number


@functools.cache
def _fields_of(kind: Any, exact: bool) -> dict[str, tuple[Read, bool]]:
    """Return of each field that has a JSON form what reads it, and whether it must be given."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        item.name: (_reader(hints[item.name], exact), item.default is item.empty)
        for item in inspect.signature(kind).parameters.values()
        if NOT_JSON not in get_args(hints[item.name])
    }


def _part(kind: Any, exact: bool, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    fields = _fields_of(kind, exact)
    if not exact and getattr(kind, "is_named", False):
        first = next(iter(fields))
        value = {first: value} if isinstance(value, str) else value
        if not isinstance(value, dict):
            raise Refused(f"must be a name or a mapping with `{first}`", value, wanted=kind)
    if not isinstance(value, dict):
        raise Refused(_RULES[dict], value, wanted=dict)
    if not exact and (others := getattr(kind, "other_keys", "")):
        value = {name: value[name] for name in fields if name in value and name != others} | {
            others: {key: each for key, each in value.items() if key == others or key not in fields}
        }
    tag = getattr(getattr(kind, "__struct_config__", None), "tag", None)
    for key in value:
        if key not in fields and (tag is None or key != "type"):
            allowed = ["type", *fields] if tag is not None else list(fields)
            instead = getattr(kind, "refused_keys", {}).get(key) or f"known: {', '.join(allowed)}"
            raise Refused(f"unknown key {key!r}{nearest(key, allowed)}; {instead}")
    values = {}
    for name, (read_it, is_required) in fields.items():
        if name in value:
            values[name] = _under(name, read_it, value[name])
        elif is_required:
            raise Refused("is required").under(name)
    try:
        return kind(**values)
    except (ValueError, ExperimentError) as error:
        raise Refused(str(error)) from error


def json_schema(kind: Any, title: str) -> dict[str, Any]:
    """Return the JSON Schema of what `read` takes for a structure."""
    _, parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for part in parts.values():
        part.setdefault("additionalProperties", False)  # of a dataclass msgspec would leave them out
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **parts.pop(kind.__name__), "title": title, "$defs": parts}
