"""`tasks:`, `matrix:` and `zip:` multiply: from the values of a file to one content per variant."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

from tuneoff.base.identity import canonical_json, digest
from tuneoff.errors import ExperimentError

NAMED = {"workload": "name", "sampler": "name", "pruner": "name", "power": "meter"}  # the key that a bare name stands for
TASKS, TASK = "tasks", "task"  # the key of a file, and what a variant calls its own
MAX_VARIANTS = 10_000
MAX_VALUES = 2_000_000  # of all variants together: each is a copy of the file
_OWN_AXES = ("adapters", "seeds")  # multiply already
# belong to the whole file
_NO_AXES = ("name", "matrix", "zip", "tasks", "include", "warm_up", "power", "carbon", "prices", "analysis", "rules")
_AXES = ("matrix", "zip", TASKS)
_NO_PART_OF_A_RUN = ("anchors", "timeouts")  # of what a task may set: what its runs do is the same
Axis = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]  # of each step what the values of a variant say, and what it sets
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def expand(content: Mapping[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return (the values of the variant, its content without the axes) per variant, tasks slowest, the last axis fastest.

    Raises:
        ExperimentError: an axis is not a list of different values, or a key is set twice.
    """
    axes: list[Axis] = [*_task_axes(content.get(TASKS)), *_matrix_axes(content.get("matrix")), *_zip_axes(content.get("zip"))]
    taken: list[str] = []
    for axis in axes:
        keys = dict.fromkeys(key for _, step in axis for key in step)
        for key in keys:
            head = key.partition(".")[0]
            if head in _OWN_AXES:
                raise ExperimentError(f"matrix: {key!r} may not be varied: `{head}:` is a list that multiplies already; use that")
            if head in _NO_AXES or not all(key.split(".")):
                raise ExperimentError(f"matrix: {key!r} may not be varied; give a dotted key of one run, e.g. budget.trials")
        for key, other in (*product(keys, taken), *(pair for _, step in axis for pair in combinations(step, 2))):
            if _overlap(key, other):
                raise ExperimentError(
                    f"matrix: a key may be set once, by one axis or task, but got {other!r} and {key!r}; remove one"
                )
        taken += keys
    count = math.prod(map(len, axes))
    if count > MAX_VARIANTS:
        raise ExperimentError(f"matrix: at most {MAX_VARIANTS} variants may be asked for, but got {count}; shorten a list")
    base = {key: value for key, value in content.items() if key not in _AXES}
    if count > 1 and count * _size(base) > MAX_VALUES:
        raise ExperimentError(
            f"matrix: all variants together may have at most {MAX_VALUES} values, but {count} have more; shorten a list"
        )
    variants = []
    for choices in product(*axes):
        values = {key: value for label, _ in choices for key, value in label.items()}
        variant = copy.deepcopy(base) if values else base
        for _, step in choices:
            for key, value in step.items():
                put(variant, key, copy.deepcopy(value))
        variants.append((values, variant))
    return variants


def task_digest(content: Mapping[str, Any], task: str | None) -> str:
    """Return the digest of what a task changes against the file's base: keys and values, never its name; "": nothing.

    What a run is measured by and how long it may take (anchors, timeouts) changes nothing of it.
    """
    steps = content[TASKS][task] if task is not None else {}
    changed = {
        key: value
        for key, value in steps.items()
        if key.partition(".")[0] not in _NO_PART_OF_A_RUN and canonical_json([value]) != canonical_json(_at(content, key))
    }
    return digest(changed) if changed else ""


def _at(content: Any, key: str) -> list[Any]:
    """Return the value of a dotted key as a list, an empty one where there is none."""
    for part in key.split("."):
        if not isinstance(content, Mapping) or part not in content:
            return []
        content = content[part]
    return [content]


def _size(value: Any) -> int:
    """Return how many values a value has, itself included."""
    below = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, below))


def put(content: dict[str, Any], key: str, value: Any) -> None:
    """Set the dotted `key` in `content`; a bare workload, sampler or pruner name on the way becomes a mapping."""
    *parents, last = key.split(".")
    here = content
    for depth, parent in enumerate(parents):
        below = here.get(parent)
        if depth == 0 and parent in NAMED:
            below = named(below, parent)
        below = {} if below is None else below
        if not isinstance(below, dict):
            raise ExperimentError(f"{key}: {'.'.join(parents[: depth + 1])} must be a mapping to hold it, but it is {below!r}")
        here[parent] = below
        here = below
    here[last] = value


def without(content: Mapping[str, Any], keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` with the axes that set one of `keys`, or a part of one, taken out of `matrix`, `zip` and each task."""

    def keep(group: Any) -> Any:
        if not isinstance(group, Mapping):
            return group
        return {axis: values for axis, values in group.items() if not any(_overlap(axis, key) for key in keys)}

    result = dict(content)
    if isinstance(content.get("matrix"), Mapping):
        result["matrix"] = keep(content["matrix"])
    if isinstance(content.get("zip"), list):
        result["zip"] = [group for group in map(keep, content["zip"]) if group]
    if isinstance(content.get(TASKS), Mapping):
        result[TASKS] = {name: keep(task) for name, task in content[TASKS].items()}
    return {key: value for key, value in result.items() if value or key not in ("matrix", "zip")}


def _task_axes(tasks: Any) -> Iterator[Axis]:
    if tasks is None:
        return
    for name, task in _mapping("tasks", tasks, "names to dotted keys with their values").items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ExperimentError(
                f"tasks: a name must be letters, digits, `.`, `_` and `-` after a letter or digit, but got {name!r}; rename it"
            )
        if not isinstance(task, Mapping):
            raise ExperimentError(f"tasks.{name}: must be a mapping of dotted keys to values, but got {task!r}")
    yield [({TASK: name}, task) for name, task in tasks.items()]


def _matrix_axes(matrix: Any) -> Iterator[Axis]:
    for key, values in _mapping("matrix", matrix, "dotted keys to lists").items() if matrix is not None else ():
        yield _distinct(f"matrix.{key}", [{key: value} for value in _values(f"matrix.{key}", values)])


def _zip_axes(groups: Any) -> Iterator[Axis]:
    if groups is not None and (not isinstance(groups, list) or not groups):
        raise ExperimentError(f"zip: must be a list of groups, but got {groups!r}; start each group with a dash")
    for index, group in enumerate(groups or ()):
        where = f"zip.{index}"
        columns = [_values(f"{where}.{key}", values) for key, values in _mapping(where, group, "dotted keys to lists").items()]
        lengths = [len(values) for values in columns]
        if len(set(lengths)) > 1:
            text = ", ".join(f"{key} has {length}" for key, length in zip(group, lengths, strict=True))
            raise ExperimentError(f"{where}: the lists of a group must be equally long, but {text}")
        yield _distinct(where, [dict(zip(group, row, strict=True)) for row in zip(*columns, strict=True)])


def _mapping(where: str, value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise ExperimentError(f"{where}: must be a mapping of {what}, but got {value!r}")
    return value


def _values(where: str, values: Any) -> list[Any]:
    if not isinstance(values, list) or not values:
        way_out = "give values or remove the key" if values == [] else f"write [{values}]"
        raise ExperimentError(f"{where}: must be a list of values, but got {values!r}; {way_out}")
    return values


def _distinct(where: str, steps: Sequence[Mapping[str, Any]]) -> Axis:
    """Return the axis of different steps, which are their own labels."""
    seen: set[str] = set()
    for step in steps:
        text = canonical_json(step)
        if text in seen:
            raise ExperimentError(f"{where}: values must differ, but {text} is given twice; remove one")
        seen.add(text)
    return [(step, step) for step in steps]


def _overlap(first: str, other: str) -> bool:
    return first == other or first.startswith(f"{other}.") or other.startswith(f"{first}.")


def named(value: Any, key: str | None = None) -> Any:
    """Return the mapping that a name stands for under `key` of the file, or in a list of adapters: `NAME==VERSION@PLATFORM`."""
    if not isinstance(value, str) or key not in (None, "adapters"):
        return {NAMED.get(key or "", "name"): value} if isinstance(value, str) else value
    name, at, platform = value.partition("@")
    name, equals, version = name.partition("==")
    return {"name": name, **({"platform": platform} if at else {}), **({"environment": {"version": version}} if equals else {})}
