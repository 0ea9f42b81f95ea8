"""What a file asks for under `power:`: the same for every run of a matrix, in no run's id, with paths beside the file."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from tuneoff.base.json_values import field_values
from tuneoff.base.reading import NOT_JSON, Options

PATHS = {"replay": ("path",), "rapl": ("root",), "model": ("cpuinfo",)}  # by meter
COMMAND = "command"  # its program is a path where it has a slash; what else it is given is its own
Relocate = Callable[[str], str]
AUTO = "auto"
INTERVAL_SECONDS = (0.02, 10.0)  # least and greatest time between samples
NO_METER = "none"  # nothing is metered: the use of the host and of its processes is sampled alone


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSettings:
    """How energy is metered: a meter's name (or module:Class), its options, how often it is read."""

    is_named: ClassVar[bool] = True

    meter: Annotated[str, Meta(min_length=1)] = AUTO
    options: Annotated[Options, Meta(description="Of the meter; of `auto` by the meters' names.")] = field(default_factory=dict)
    interval_seconds: Annotated[float, Meta(ge=INTERVAL_SECONDS[0], le=INTERVAL_SECONDS[1])] = 0.2
    folder: Annotated[str, NOT_JSON] = field(default="", compare=False)  # of the experiment file: there relative paths begin

    @property
    def placed_options(self) -> Mapping[str, Any]:
        """The options with paths that can be opened from here."""

        return placed(self.meter, self.options, within(self.folder))

    @property
    def line(self) -> str:
        """One line for `tuneoff plan`: what is asked for; which meter there is, is found on the host of the run."""
        if self.meter == NO_METER:
            return "power: no meter, as asked for"
        meter = "auto, the best that the host has" if self.meter == AUTO else self.meter
        options = ", ".join(f"{name}: {_shown(value)}" for name, value in self.options.items())
        return f"power: meter {meter}{f' ({options})' if options else ''}, read every {self.interval_seconds:g} s"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return field_values(self, without=("folder",))


def _shown(value: Any) -> str:
    """Return an option as a file writes it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_shown(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return shlex.join(value) if all(isinstance(item, str) for item in value) else f"[{', '.join(map(_shown, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def placed(meter: str | None, options: Mapping[str, Any], relocate: Relocate) -> dict[str, Any]:
    """Return the options with each relative path as `relocate` gives it; `meter` None: whichever it will be."""
    if meter == AUTO:
        return _parts(options, relocate)
    names = PATHS.get(meter, ()) if meter is not None else [name for names in PATHS.values() for name in names]
    relocated = {name: _path(value, relocate) if name in names else value for name, value in options.items()}
    if COMMAND in options and meter in (COMMAND, None):
        relocated[COMMAND] = _command(options[COMMAND], relocate)
    return _parts(relocated, relocate) if meter is None else relocated


def within(folder: str) -> Relocate:
    """Return what puts a path into a folder; what is written in the current folder stays as it is."""
    return lambda path: path if folder in ("", ".") else os.path.join(folder, path.removeprefix("./"))


def _parts(options: Mapping[str, Any], relocate: Relocate) -> dict[str, Any]:
    """Return options of `auto`, which are those of meters by their names."""
    return {
        name: placed(name, value, relocate) if name in PATHS and isinstance(value, Mapping) else value
        for name, value in options.items()
    }


def _path(value: Any, relocate: Relocate) -> Any:
    return relocate(value) if isinstance(value, str) and value and not os.path.isabs(value) else value


def _command(value: Any, relocate: Relocate) -> Any:
    try:
        words = shlex.split(value) if isinstance(value, str) else list(value)
    except (ValueError, TypeError):  # the meter refuses it
        return value
    if not words or not isinstance(words[0], str) or os.sep not in words[0] or os.path.isabs(words[0]):
        return value
    command = relocate(words[0])
    if command == words[0]:
        return value
    words = [command if os.sep in command else os.path.join(os.curdir, command), *words[1:]]
    return shlex.join(words) if isinstance(value, str) else words
