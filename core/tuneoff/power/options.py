"""Check the options of a meter: each error is one line with the option, the value and the way out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuneoff.power.meter import OptionError
from tuneoff.suggest import nearest


def check_names(meter: str, options: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse an option that the meter does not have.

    Raises:
        OptionError: there is one.
    """
    names = sorted(known)
    for option in options:
        if option not in names:
            listed = ", ".join(names) or "none"
            raise OptionError(f"meter {meter} has no option {option!r}{nearest(option, names)}; its options: {listed}")


def number(meter: str, options: Mapping[str, Any], name: str, default: float | None = None, *, least: float = 0.0) -> float:
    """Return an option that is a finite number of at least `least`.

    Raises:
        OptionError: it is none, or it is missing and has no default.
    """
    value = options.get(name, default)
    if value is None:
        raise OptionError(f"meter {meter} needs the option `{name}`, a number >= {least:g}; give it under power.options")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < least:
        raise OptionError(f"meter {meter}: `{name}` must be a number >= {least:g}, but got {value!r}; correct power.options")
    return float(value)


def text(meter: str, options: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return an option that is a text with something in it.

    Raises:
        OptionError: it is none, or it is missing and has no default.
    """
    value = options.get(name, default)
    if not isinstance(value, str) or not value:
        got = "it is missing" if value is None else f"got {value!r}"
        raise OptionError(f"meter {meter}: `{name}` must be a text, but {got}; give it under power.options")
    return value


def pair(meter: str, options: Mapping[str, Any], name: str, default: tuple[float, float]) -> tuple[float, float]:
    """Return an option that is a list of two numbers of at least 0.

    Raises:
        OptionError: it is none.
    """
    value = options.get(name, default)
    fits = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    if not fits or not all(isinstance(part, int | float) and math.isfinite(part) and part >= 0 for part in value):
        raise OptionError(f"meter {meter}: `{name}` must be two numbers >= 0, but got {value!r}; correct power.options")
    return float(value[0]), float(value[1])
