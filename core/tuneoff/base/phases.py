"""What a training tells of itself while an epoch runs: the items that it trained on, and how long each of its phases took.

One phase runs at a time, in the thread that trains: one that begins inside another pauses that, so that together they take no
longer than the epoch. A `with` costs about 1 us, and what a training does not use costs nothing.
"""

from __future__ import annotations

import operator
import re
from time import monotonic_ns
from typing import SupportsIndex

PHASES = ("load", "forward", "loss", "backward", "step", "validate")  # the usual ones, in the order in which they are shown
PHASE_NAME = r"[0-9A-Za-z][0-9A-Za-z_-]{0,39}"
MOST_PHASES = 32  # of a process
MOST_ITEMS = 10**15  # in a call

_phases: dict[str, Phase] = {}
_paused: list[Phase | None] = []
_running: Phase | None = None
_since_ns = 0  # when the running one began, or went on
_items: int | None = None


class Phase:
    """A phase, to be entered again and again; `phase` gives it. A training with a clock of its own may set `ns` itself."""

    __slots__ = ("ns",)

    def __init__(self) -> None:
        self.ns = 0  # in this epoch, without what it was paused for

    def __enter__(self) -> None:
        global _running, _since_ns
        now = monotonic_ns()
        if _running is not None:
            _running.ns += now - _since_ns
        _paused.append(_running)
        _running, _since_ns = self, now

    def __exit__(self, *_: object) -> None:
        global _running, _since_ns
        now = monotonic_ns()
        self.ns += now - _since_ns
        _running, _since_ns = _paused.pop() if _paused else None, now


def phase(name: str) -> Phase:
    """Return the phase of this name: `with phase("forward"):` counts its block, of an epoch's training and validation.

    Raises:
        ValueError: the name is none (1 to 40 letters, digits, `_` and `-`), or there are too many.
    """
    if name not in _phases:
        if re.fullmatch(PHASE_NAME, name) is None:
            raise ValueError(f"a phase's name must be 1 to 40 letters, digits, _ or -, as {PHASES[1]} is, but got {name!r}")
        if len(_phases) >= MOST_PHASES:
            raise ValueError(f"a training has at most {MOST_PHASES} phases, but got another one: {name!r}")
        _phases[name] = Phase()
    return _phases[name]


def items(count: SupportsIndex) -> None:
    """Count items (images, tokens, rows) that the epoch was trained on, at once or batch by batch, in `train_epoch`.

    Raises:
        TypeError, ValueError: it is no whole number, or out of range.
    """
    global _items
    number = operator.index(count)
    if not 0 <= number <= MOST_ITEMS:
        raise ValueError(f"`items` must be a whole number from 0 to {MOST_ITEMS}, but got {number}")
    _items = number + (_items or 0)


def begin_epoch(now_ns: int) -> None:
    """Begin at 0; a phase that was not left goes on, and what passed since the last epoch is not its."""
    global _items, _since_ns
    _items, _since_ns = None, now_ns
    for timed in _phases.values():
        timed.ns = 0


def counted_items() -> int | None:
    """Return how many items were counted since the epoch began; None: nobody counts them."""
    return _items


def phase_times(now_ns: int) -> dict[str, int]:
    """Return the ns of each phase that ran since the epoch began."""
    if _running is not None:
        _running.ns += now_ns - _since_ns
    return {name: timed.ns for name, timed in _phases.items() if timed.ns}


def begin_training() -> None:
    """Leave the phases that an earlier training in this process did not leave."""
    global _running
    _running = None
    _paused.clear()
