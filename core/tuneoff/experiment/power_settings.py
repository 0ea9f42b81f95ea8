"""What an experiment file asks for under `power:`; the same for every run of a matrix, and not in a run's id."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AUTO = "auto"
NO_METER = "none"  # nothing is metered: the use of the host and of its processes is sampled alone


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSettings:
    """The meter (`auto`: the best that the host has), its options, how often it is read, and a second opinion beside it."""

    meter: str = AUTO
    options: Mapping[str, Any] = field(default_factory=dict)  # of the meter
    interval_seconds: float = 0.2
    second: str | None = None  # a meter that is read too; attribution does not use it
    folder: str = field(default="", compare=False)  # of the experiment file: there relative paths begin; not stored

    @property
    def placed_options(self) -> Mapping[str, Any]:
        """The options with paths that can be opened from here."""
        from tuneoff.experiment.power_paths import placed, within

        return placed(self.meter, self.options, within(self.folder))

    @property
    def line(self) -> str:
        """One line for `tuneoff plan`: what is asked for; which meter there is, is found on the host of the run."""
        if self.meter == NO_METER:
            return "power: no meter, as asked for"
        meter = "auto, the best that the host has" if self.meter == AUTO else self.meter
        options = ", ".join(f"{name}: {_shown(value)}" for name, value in self.options.items())
        second = f", {self.second} as a second opinion" if self.second else ""
        return f"power: meter {meter}{f' ({options})' if options else ''}, read every {self.interval_seconds:g} s{second}"

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        names = ("meter", "options", "interval_seconds", "second")
        return {name: dict(self.options) if name == "options" else getattr(self, name) for name in names}


def _shown(value: Any) -> str:
    """Return an option as a file writes it."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_shown(one)}' for name, one in value.items())}}}"
    if isinstance(value, list | tuple):
        return shlex.join(value) if all(isinstance(one, str) for one in value) else f"[{', '.join(map(_shown, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
