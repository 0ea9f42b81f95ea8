"""Read an experiment file as plain JSON values: by the scalar rules of YAML 1.2 (`1e-4` is a number), with what it includes.

`include:`: paths relative to the including file, a deep merge, the including file wins.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tuneoff.base.files import read_regular, reason_of
from tuneoff.errors import ExperimentError
from tuneoff.experiment.variants import NAMED, named

MAX_FILES = 100  # that one file includes, those of its includes counted
MAX_DEPTH = 50  # nesting of any file that people write
MAX_VALUES = 1_000_000  # aliases multiply
MAX_MERGED = 100_000  # keys that merge keys (`<<`) bring
MAX_BYTES = 500_000  # of a file: more take longer to read than anyone waits for a plan
MAX_DIGITS = 300  # of a whole number: more are no float either
_TAG = "tag:yaml.org,2002:"


_READ = {f"{_TAG}{name}" for name in ("bool", "null", "int", "float", "str", "seq", "map")}


class _Loader(yaml.SafeLoader):
    """SafeLoader with the core schema of YAML 1.2 (section 10.3.2) and unique keys."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # a class attribute of PyYAML

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag == f"{_TAG}merge":
                continue
            if not (isinstance(key, yaml.ScalarNode) and key.tag == f"{_TAG}str"):
                raise ExperimentError(f"line {line}: a key must be text, but got {key.value!r}; put it in quotes")
            if key.value in lines:
                raise ExperimentError(
                    f"line {line}: key {key.value!r} is given twice, first on line {lines[key.value]}; remove one"
                )
            lines[key.value] = line
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        before = len(node.value)
        super().flatten_mapping(node)
        self.merged = getattr(self, "merged", 0) + max(0, len(node.value) - before)
        if self.merged > MAX_MERGED:
            line = node.start_mark.line + 1
            raise ExperimentError(f"line {line}: merge keys (`<<`) may add at most {MAX_MERGED} keys; write fewer of them")


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(_TAG + tag, re.compile(f"^(?:{pattern})$"), [*first] if first else [""])


_resolve("bool", "true|True|TRUE|false|False|FALSE", "tTfF")
_resolve("null", "~|null|Null|NULL", "~nN")
_resolve("null", "", "")
_resolve("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789")
_resolve("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789")
_resolve("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.")
_resolve("merge", "<<", "<")


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = node.value
    base = {"0o": 8, "0x": 16}.get(text[:2].lower(), 10)  # 010 is ten, as in YAML 1.2
    if len(text) > MAX_DIGITS:
        line = node.start_mark.line + 1
        raise ExperimentError(
            f"line {line}: a whole number may have at most {MAX_DIGITS} digits, but got {len(text)}; shorten it"
        )
    return int(text[2:] if base != 10 else text, base)


def _refuse_tag(loader: _Loader, node: yaml.Node) -> None:
    tag = node.tag.replace(_TAG, "!!")
    raise ExperimentError(f"line {node.start_mark.line + 1}: the tag {tag} is not read; write a plain value, without it")


_Loader.yaml_constructors = {tag: make for tag, make in yaml.SafeLoader.yaml_constructors.items() if tag in _READ}
_Loader.add_constructor(None, _refuse_tag)
_Loader.add_constructor(f"{_TAG}int", _construct_int)
_Loader.add_constructor(
    f"{_TAG}float", lambda loader, node: float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
)


def scalar_tag(text: str) -> str:
    """Return the type of a scalar that is written without quotes: "str", "int", "float", "bool" or "null"."""
    loader: Any = _Loader("")
    return str(loader.resolve(yaml.ScalarNode, text, (True, False))).removeprefix(_TAG)


def read_yaml(path: Path, what: str = "an experiment", needs: str = "`workload`, `adapters` and `budget`") -> dict[str, Any]:
    """Return the mapping in a YAML file; errors say `what` it is and what it `needs`.

    Raises:
        ExperimentError: the file cannot be read, is empty, is not YAML, or is not a mapping; one line with the path.
    """
    try:
        text = read_regular(path, MAX_BYTES, follow=True).decode("utf-8-sig")
    except IsADirectoryError as error:
        raise ExperimentError(f"{path}: {what} is a YAML file, but this is a folder; name a file in it") from error
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path}: the file must be UTF-8 text, but byte {error.start} is not; save it as UTF-8") from error
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL byte
        way_out = "check the path and its permissions"
        other = path.with_suffix(".yaml" if path.suffix == ".yml" else ".yml")
        if isinstance(error, FileNotFoundError) and other.is_file():
            way_out = f"did you mean {other.name!r}?"
        raise ExperimentError(f"{path}: the file cannot be read: {reason_of(error)}; {way_out}") from error
    try:
        data = yaml.load(text, _Loader)
        _check_values(data)
    except ExperimentError as error:
        raise ExperimentError(f"{path}: {error}") from error
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError) as error:  # a tag that its value does not fit
        problem = " ".join(str(error).split())
        if (mark := getattr(error, "problem_mark", None)) is not None:
            problem = str(getattr(error, "problem", error))
            problem = f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
        raise ExperimentError(f"{path}: not YAML: {problem}") from error
    except RecursionError as error:
        raise ExperimentError(f"{path}: nested more than {MAX_DEPTH} deep; flatten it") from error
    if data is None:
        raise ExperimentError(f"{path}: the file is empty; it needs at least {needs}")
    if not isinstance(data, dict):
        raise ExperimentError(f"{path}: the file must be a mapping of keys to values, but it is a {type(data).__name__}")
    return data


def _check_values(data: Any) -> None:
    """Refuse what has no JSON form, is nested too deeply (an alias that contains itself), or is multiplied by aliases."""
    waiting = [(data, 0)]
    for count in itertools.count():
        if not waiting:
            return
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ExperimentError(f"values may be nested at most {MAX_DEPTH} deep; flatten them, or remove an alias to itself")
        if count > MAX_VALUES:
            raise ExperimentError(f"a file may have at most {MAX_VALUES} values, aliases counted; shorten it")
        if isinstance(value, dict | list):
            waiting.extend((item, depth + 1) for item in (value.values() if isinstance(value, dict) else value))
        elif not (value is None or isinstance(value, str | int | float)):
            raise ExperimentError(f"values must be text, numbers, true, false or null, but got {value!r}; put it in quotes")


def read_merged(path: Path) -> dict[str, Any]:
    """Return the content of an experiment file with its includes merged in.

    Raises:
        ExperimentError: a file cannot be read or is not a mapping, or files include each other.
    """
    return _read(path, (), None, [])


def _read(path: Path, above: tuple[Path, ...], includer: Path | None, read: list[Path]) -> dict[str, Any]:
    """Return the content of a file; `read`: those that were read so far."""
    try:
        here = path.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a NUL byte; RuntimeError: links in a circle
        raise ExperimentError(f"{path}: the file cannot be read: {reason_of(error)}; check the path") from error
    if here in above:
        chain = " -> ".join(item.name for item in (*above, here))
        raise ExperimentError(f"{path}: include: a file may not include itself, but got {chain}; remove one of them")
    read.append(here)
    if len(read) > MAX_FILES:
        raise ExperimentError(f"{path}: include: at most {MAX_FILES} files may be included, one counted each time; include fewer")
    try:
        data = {key: named(value, key) if key in NAMED else value for key, value in read_yaml(path).items()}
    except ExperimentError as error:
        if includer is None:
            raise
        raise ExperimentError(f"{includer}: include: {error}") from error

    # the paths that a file gives, relative to itself, become paths from here; those of a meter begin at the first file
    folder, prices, carbon = path.parent, data.get("prices"), data.get("carbon")
    if isinstance(prices, str) and prices and prices != "none":
        data["prices"] = str(folder / prices)
    if isinstance(carbon, dict) and isinstance(carbon.get("series"), str) and carbon["series"]:
        data["carbon"] = {**carbon, "series": str(folder / carbon["series"])}

    included = data.pop("include", None)
    names = [included] if isinstance(included, str) else included
    if included is not None and not (isinstance(names, list) and names and all(isinstance(name, str) and name for name in names)):
        raise ExperimentError(f"{path}: include: must be a path or a list of paths, but got {included!r}")
    merged: dict[str, Any] = {}
    for name in names or ():
        merged = _over(merged, _read(path.parent / name, (*above, here), path, read))
    return _over(merged, data)


def _over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return one file's content on top of another's: as `merge`, but another meter or carbon intensity replaces the one below."""
    result = merge(base, over)
    if "carbon" in over:
        result["carbon"] = over["carbon"]
    below, power = base.get("power"), over.get("power")
    if isinstance(below, Mapping) and isinstance(power, Mapping) and _is_another(below, power, ("meter",)):
        result["power"] = power
    return result


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` on top: mappings are merged, everything else is replaced.

    A mapping whose `name` or `type` differs is another thing, and replaces the one below it: the bounds of a float would
    make no sense in the constant that replaces it.
    """
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping) and not _is_another(below, value):
            result[key] = merge(below, value)
        else:
            result[key] = value
    return result


def _is_another(below: Mapping[str, Any], value: Mapping[str, Any], keys: Sequence[str] = ("name", "type")) -> bool:
    return any(key in below and key in value and below[key] != value[key] for key in keys)
