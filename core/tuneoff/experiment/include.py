"""`include:` reuses files: paths relative to the including file, a deep merge, the including file wins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tuneoff.base.files import reason_of
from tuneoff.errors import ExperimentError
from tuneoff.experiment.power_paths import placed, within
from tuneoff.experiment.yaml_reader import read_yaml

MAX_FILES = 100  # that one file includes, those of its includes counted
NAMED = {"workload": "name", "sampler": "name", "pruner": "name", "power": "meter"}  # the key that a bare name stands for


def read_merged(path: Path) -> dict[str, Any]:
    """Return the content of an experiment file with its includes merged in.

    Raises:
        ExperimentError: a file cannot be read or is not a mapping, or files include each other.
    """
    return _read(path, (), None, path.parent, [])


def _read(path: Path, above: tuple[Path, ...], includer: Path | None, top: Path, read: list[Path]) -> dict[str, Any]:
    """Return the content of a file; `top`: the folder of the first file; `read`: those that were read so far."""
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
    _place_paths(data, path.parent, top)
    included = data.pop("include", None)
    merged: dict[str, Any] = {}
    for name in _paths(path, included):
        merged = _over(merged, _read(path.parent / name, (*above, here), path, top, read))
    return _over(merged, data)


def _place_paths(data: dict[str, Any], folder: Path, top: Path) -> None:
    """Turn the paths that a file gives, relative to itself, into paths from here; those of a meter into paths from `top`.

    A meter's are stored with the plan, which must be the same wherever it is made.
    """
    prices, carbon = data.get("prices"), data.get("carbon")
    if isinstance(prices, str) and prices and prices != "none":
        data["prices"] = str(folder / prices)
    if isinstance(carbon, dict) and isinstance(carbon.get("series"), str) and carbon["series"]:
        data["carbon"] = {**carbon, "series": str(folder / carbon["series"])}
    power = data.get("power")
    if isinstance(power, dict) and isinstance(power.get("options"), dict) and folder != top:
        meter = power.get("meter")
        place = within(os.path.relpath(folder, top))
        data["power"] = {**power, "options": placed(meter if isinstance(meter, str) else None, power["options"], place)}


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


def named(value: Any, key: str | None = None) -> Any:
    """Return the mapping that a bare name stands for under `key` of the file, or in a list of adapters."""
    return {NAMED.get(key or "", "name"): value} if isinstance(value, str) else value


def _is_another(below: Mapping[str, Any], value: Mapping[str, Any], keys: Sequence[str] = ("name", "type")) -> bool:
    return any(key in below and key in value and below[key] != value[key] for key in keys)


def _paths(path: Path, included: Any) -> list[str]:
    if included is None:
        return []
    names = [included] if isinstance(included, str) else included
    if not (isinstance(names, list) and names and all(isinstance(name, str) and name for name in names)):
        raise ExperimentError(f"{path}: include: must be a path or a list of paths, but got {included!r}")
    return names
