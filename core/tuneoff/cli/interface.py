"""What a plugin author imports, as Markdown made from signatures and docstrings."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any


def interface(*modules: str) -> str:
    """Return a page with the signature and docstring of every class, method and function of these modules, each once."""
    shown: set[int] = set()
    return "\n\n".join(part for name in modules for part in _module(name, shown))


def _module(name: str, shown: set[int]) -> Iterator[str]:
    """Yield what a module has: by its `__all__`, else what it defines."""
    module = importlib.import_module(name)
    yield f"# `{name}`\n\n{inspect.getdoc(module) or ''}"
    own = [key for key, item in vars(module).items() if getattr(item, "__module__", None) == name and not key.startswith("_")]
    for item in (getattr(module, key) for key in getattr(module, "__all__", own)):
        if id(item) in shown or not isinstance(item, type | FunctionType):
            continue
        shown.add(id(item))
        yield from _class(item) if isinstance(item, type) else _function(item, "## ")


def _class(item: type) -> Iterator[str]:
    yield f"## `class {item.__name__}`\n\n{inspect.getdoc(item) or ''}".rstrip()
    if issubclass(item, enum.Enum):
        yield "\n".join(f"- `{member.name}`: {member.value}" for member in item)
    fields = list(_fields(item))
    if fields:
        yield "\n".join(fields)
    for name, member in vars(item).items():
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, property):
            yield f"### `{item.__name__}.{name}`\n\n{inspect.getdoc(member) or ''}".rstrip()
        elif isinstance(member, FunctionType | classmethod | staticmethod) and not _is_made(item, name):
            yield from _function(getattr(item, name), f"### `{item.__name__}.", name)


def field_comments(item: type) -> dict[str, str]:
    """Return the comment beside each field of a class that has one."""
    found = re.findall(r"^    (\w+): [^#\n]*  # (.+)$", inspect.getsource(item), flags=re.MULTILINE)
    return {name: comment for name, comment in found if not comment.startswith(("type:", "noqa"))}


def _fields(item: type) -> Iterator[str]:
    """Yield the fields of a class as they are written, in Markdown: `name: type = default`, and the comment beside it."""
    comments = field_comments(item)
    defaults = {field.name: field for field in dataclasses.fields(item)} if dataclasses.is_dataclass(item) else {}
    for name, kind in inspect.get_annotations(item).items():
        field: Any = defaults.get(name)
        default = vars(item).get(name, dataclasses.MISSING) if field is None else field.default
        if inspect.ismemberdescriptor(default):  # a slot
            default = dataclasses.MISSING
        written = f"{name}: {kind}" + ("" if default is dataclasses.MISSING else f" = {default!r}")
        yield f"- `{written}`" + (f": {comments[name]}" if name in comments else "")


def _is_made(item: type, name: str) -> bool:
    """Tell whether a method was written by `dataclass`."""
    return name == "__init__" and dataclasses.is_dataclass(item)


def _function(item: Any, head: str, name: str = "") -> Iterator[str]:
    begin = head if name else f"{head}`"
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(item)))  # annotations are not evaluated
    yield f"{begin}{name or item.__name__}{signature}`\n\n{inspect.getdoc(item) or ''}".rstrip()
