"""Options of meters that are paths: relative to the file that writes them, as all paths of an experiment file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from tuneoff.experiment.power_settings import AUTO

PATHS = {"replay": ("path",), "rapl": ("root",), "model": ("cpuinfo",)}  # by meter
COMMAND = "command"  # its program is a path where it has a slash; what else it is given is its own
Place = Callable[[str], str]


def placed(meter: str | None, options: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return the options with each relative path as `place` gives it; `meter` None: whichever it will be."""
    if meter == AUTO:
        return _parts(options, place)
    names = PATHS.get(meter, ()) if meter is not None else [name for names in PATHS.values() for name in names]
    found = {name: _path(value, place) if name in names else value for name, value in options.items()}
    if COMMAND in options and meter in (COMMAND, None):
        found[COMMAND] = _command(options[COMMAND], place)
    return _parts(found, place) if meter is None else found


def within(folder: str) -> Place:
    """Return what puts a path into a folder; what is written in the current folder stays as it is."""
    return lambda path: path if folder in ("", ".") else os.path.join(folder, path.removeprefix("./"))


def _parts(options: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return options of `auto`, which are those of meters by their names."""
    return {
        name: placed(name, value, place) if name in PATHS and isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def _path(value: Any, place: Place) -> Any:
    return place(value) if isinstance(value, str) and value and not os.path.isabs(value) else value


def _command(value: Any, place: Place) -> Any:
    try:
        words = shlex.split(value) if isinstance(value, str) else list(value)
    except (ValueError, TypeError):  # the meter refuses it
        return value
    if not words or not isinstance(words[0], str) or os.sep not in words[0] or os.path.isabs(words[0]):
        return value
    there = place(words[0])
    if there == words[0]:
        return value
    words = [there if os.sep in there else os.path.join(os.curdir, there), *words[1:]]
    return shlex.join(words) if isinstance(value, str) else words
