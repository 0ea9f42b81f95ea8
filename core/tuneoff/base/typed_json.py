"""Dataclasses read back from JSON values that anyone may have changed.

msgspec is imported by the first call: `plan` imports this module with each adapter, and reads nothing by it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    import msgspec

Read = Callable[[Any], Any]


def read_dataclass(kind: Callable[..., Any], values: Any) -> Any:
    """Return `kind` from its fields' JSON values, each checked against the field's type; what has a default may be absent.

    A field whose type has a class method `from_json` is read by it. An int stays an int where a float may be: written again it
    has the same text, and so the same digest.

    Raises:
        msgspec.ValidationError, LookupError, TypeError, AttributeError: a value is of another type, a field is unknown or absent.
    """
    import msgspec

    plain, parts = _checks(kind)
    checked = msgspec.convert(values, plain)
    return kind(
        **{
            name: parts[name](value) if name in parts else value if isinstance(value, int) else getattr(checked, name)
            for name, value in values.items()
        }
    )


@functools.cache
def _checks(kind: Any) -> tuple[type[msgspec.Struct], dict[str, Read]]:
    """Return a structure that checks a dataclass's plain fields, and what reads its others."""
    import msgspec

    known = get_type_hints(kind, include_extras=True)
    hints = {field.name: known[field.name] for field in fields(kind)}
    parts = {name: read for name, hint in hints.items() if (read := _reader(hint)) is not None}
    plain = [(name, Any if name in parts else hint, None) for name, hint in hints.items()]
    return msgspec.defstruct("Plain", plain, kw_only=True, forbid_unknown_fields=True), parts


def _reader(hint: Any) -> Read | None:
    if hasattr(hint, "from_json"):
        read: Read = hint.from_json
        return read
    return functools.partial(read_dataclass, hint) if isinstance(hint, type) and is_dataclass(hint) else None
