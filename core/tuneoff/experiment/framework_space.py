"""A search space as one framework has it: its own least and greatest values, and the way there and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

NativeValues = Mapping[str, Any]  # the framework's values by the space's names


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkSpace:
    """What an adapter asked its framework for, and how it translates: the same code that its runs use.

    `ends`: of each dimension with more than one value the least and the greatest value that the framework can draw, read from
    the framework's own objects where it has them; of choices the first and the last one. `decode` gives core's configuration
    for the framework's values, `encode` the framework's values for core's configuration (None: nothing is ever encoded).
    """

    ends: Mapping[str, tuple[Any, Any]]
    decode: Callable[[NativeValues], Mapping[str, Any]]
    encode: Callable[[Mapping[str, Any]], NativeValues] | None = None
