"""What a file asks for under `power:`: the same for every run of a matrix, in no run's id, with paths beside the file."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from tuneoff.base.identity import canonical_json
from tuneoff.base.json_values import field_values
from tuneoff.base.reading import NOT_JSON, Options

PATHS = {"replay": ("path",), "rapl": ("root",), "model": ("cpuinfo",)}  # by meter
COMMAND = "command"  # its program is a path where it has a slash; what else it is given is its own
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
        """The options with paths that can be opened from here: relative ones begin at the file."""

        return self.options if self.folder in ("", ".") else _placed(self.meter, self.options, self.folder)

    @property
    def line(self) -> str:
        """One line for `tuneoff plan`: what is asked for; which meter there is, is found on the host of the run."""
        if self.meter == NO_METER:
            return "power: no meter, as asked for"
        meter = "auto, the best that the host has" if self.meter == AUTO else self.meter
        options = f" with {canonical_json(self.options)}" if self.options else ""
        return f"power: meter {meter}{options}, read every {self.interval_seconds:g} s"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return field_values(self, without=("folder",))


def _placed(meter: str, options: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return the options with each relative path below a folder; those of `auto` are of meters by their names."""
    if meter == AUTO:
        return {name: _placed(name, value, folder) if isinstance(value, Mapping) else value for name, value in options.items()}
    placed = {name: _path(value, folder) if name in PATHS.get(meter, ()) else value for name, value in options.items()}
    with contextlib.suppress(KeyError, ValueError, TypeError):  # the meter refuses such a command
        command = options[COMMAND] if meter == COMMAND else ""
        program, *words = shlex.split(command) if isinstance(command, str) else command
        if isinstance(program, str) and os.sep in program:
            words = [_path(program, folder), *words]
            placed[COMMAND] = shlex.join(words) if isinstance(command, str) else words
    return placed


def _path(value: Any, folder: str) -> Any:
    return os.path.join(folder, value.removeprefix("./")) if isinstance(value, str) and value else value
