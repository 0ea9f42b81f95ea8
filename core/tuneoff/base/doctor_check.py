"""A line of `tuneoff doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """One line: `warn` is worth knowing, `fail` keeps something from running. `exit_code` counts for `fail` alone."""

    name: str
    level: Literal["ok", "warn", "fail"]
    text: str
    exit_code: int = 0
