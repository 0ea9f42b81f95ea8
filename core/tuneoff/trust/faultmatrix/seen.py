"""What was seen of one run with a fault: how it ended, and what it claims of its trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["completed", "failed", "unfinished"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a run says of one trial; `value`: the result that it keeps for it, None for none."""

    index: int  # of the configuration in the list
    state: State
    value: float | None = None
    text: str = ""  # its words for it


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRun:
    """How a run ended and what it says. `failure`: its words, where it did not end well; `best`: (configuration, value)."""

    ended: bool = True  # by itself, before the limit
    failure: str | None = None
    claims: tuple[Claim, ...] = ()
    best: tuple[int, float | None] | None = None
    notices: tuple[str, ...] = ()  # what it says itself of its answer, where that is not to be trusted
    words: str = ""  # where it went, for a run that did not end: its last line
    seconds: float = 0.0
