"""What was computed of the object that was asked about last: many metrics ask of one record in turn."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import TypeVar

Asked = TypeVar("Asked")
Found = TypeVar("Found")


def remembers_last(compute: Callable[[Asked], Found]) -> Callable[[Asked], Found]:
    """Return the same function, which computes once where it is asked of the same object, which must not change, in turn.

    The object is not kept alive; what was computed of it is, until it is asked of another.
    """
    last: tuple[weakref.ref[Asked], Found] | None = None

    @functools.wraps(compute)
    def remembering(subject: Asked) -> Found:
        nonlocal last
        cached = last  # another thread may ask of another object
        if cached is None or cached[0]() is not subject:
            cached = last = weakref.ref(subject), compute(subject)
        return cached[1]

    return remembering
