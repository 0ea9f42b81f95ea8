"""What is a number where a training or a meter gives one, decided without importing NumPy or torch."""

from __future__ import annotations

import operator
from typing import Any

DECIMAL = r"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:nan|inf(?:inity)?))"  # as programs print a number
_EXACT = 2**53  # an integer beyond it becomes a float, which is what frameworks compare
_NO_NUMBERS = (str, bytes, bool, complex, type(None))
_NO_NUMBER_KINDS = "bcSUMm"  # of NumPy's dtypes: bool, complex, text, dates


def number_of(value: Any) -> float | int | None:
    """Return a value as Python's own number; None where it is not a number. Infinities and NaN are numbers.

    Numbers are int and float, NumPy's scalars of any width, arrays and tensors without dimensions, Decimal, Fraction, and what
    else is real and turns into a float. A bool is not (NumPy's neither), text, complex, an array with dimensions, however few
    elements it has, or an integer beyond the range of a float.
    """
    kind = type(value)
    if kind is float:
        number: float = value
        return number
    if isinstance(value, _NO_NUMBERS):
        return None
    try:
        shape = getattr(value, "shape", None)
        if shape is not None:
            if len(shape) > 0 or getattr(getattr(value, "dtype", None), "kind", "f") in _NO_NUMBER_KINDS:
                return None
            item = value.item() if hasattr(value, "item") else value
            return float(item) if hasattr(item, "shape") else number_of(item)  # a `longdouble` is its own item
        if hasattr(kind, "__index__"):
            whole = operator.index(value)
            return whole if -_EXACT <= whole <= _EXACT else float(whole)
        return float(value) if hasattr(kind, "__float__") else None
    except Exception:  # of a foreign type's own code, as of Decimal("sNaN") or a tensor without data
        return None


def exact_text(number: float) -> str:
    """Return a number with all of its digits, short where it is short: 1, 0.001, 4503599627370496."""
    if isinstance(number, int):
        return str(number)
    text = f"{number:g}"
    return text if float(text) == number else repr(number)


def described_value(value: Any) -> str:
    """Return a value for an error or a record: what it is, without the address in memory that `repr` may give."""
    number = number_of(value)
    if number is not None or value is None:
        return repr(number)
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    name = kind.__qualname__ if package == "builtins" else f"{package}.{kind.__qualname__}"
    if isinstance(value, str):
        return f"the {name} {value[:40]!r}{'...' if len(value) > 40 else ''}"
    if isinstance(value, bool | complex):
        return f"the {name} {value!r}"
    if isinstance(value, int):
        return f"an {name} of {value.bit_length()} bits"
    shape = getattr(value, "shape", None)
    size = f" of shape {tuple(shape)}" if isinstance(shape, tuple) else ""
    size = f" of {len(value)}" if isinstance(value, tuple | list | dict | set) else size
    return f"a value of type {name}{size}"
