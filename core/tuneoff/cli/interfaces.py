"""What the author of a plugin imports, as Markdown: signatures, fields and docstrings, from the modules themselves."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, ForwardRef

from tuneoff.base.output import one_line

INTERFACES: Mapping[str, tuple[str, ...]] = {  # the modules that authors of such a plugin import
    "adapter": ("tuneoff.ask_tell", "tuneoff.adapter", "tuneoff.adapter_parts"),
    "workload": ("tuneoff.workload",),
    "platform": ("tuneoff.platform",),
    "meter": ("tuneoff.meter",),
}


def interface(name: str) -> str:
    """Return a page with all that the modules of an interface have, each once."""
    seen: set[int] = set()
    parts: list[str] = []
    for module in INTERFACES[name]:
        parts.append(f"# `{module}`\n\n{inspect.getdoc(importlib.import_module(module)) or ''}")
        for key, item in _exported(module):
            if id(item) not in seen:
                seen.add(id(item))
                parts.append(item_page(key, item))
    return "\n\n".join(parts)


def interface_items() -> dict[str, Any]:
    """Return all classes, functions and types of the interfaces by their names."""
    return {key: item for modules in INTERFACES.values() for module in modules for key, item in _exported(module)}


def item_page(name: str, item: Any) -> str:
    """Return the part of a page that is about one of them."""
    if isinstance(item, type):
        return "\n\n".join(_class(item))
    return _function(item, "## ") if isinstance(item, FunctionType) else "\n\n".join(filter(None, _alias(name, item)))


def first_line(name: str, item: Any) -> str:
    """Return in one line what it is."""
    is_own = isinstance(item, type | FunctionType)
    return one_line((inspect.getdoc(item) or "").partition("\n\n")[0]) if is_own else _alias(name, item)[1]


@functools.cache
def field_comments(item: type) -> dict[str, str]:
    """Return the comment beside each field of a class, or the docstring below it, where there is one."""
    source = inspect.getsource(item)
    beside = re.findall(r"^    (\w+): [^#\n]*  # (.+)$", source, flags=re.MULTILINE)
    below = re.findall(r'^    (\w+): [^\n]*\n    """(.+?)"""', source, flags=re.MULTILINE | re.DOTALL)
    comments = {name: comment for name, comment in beside if not comment.startswith(("type:", "noqa"))}
    return {**comments, **{name: one_line(text) for name, text in below}}


def _exported(name: str) -> Iterator[tuple[str, Any]]:
    """Yield what a module has: by its `__all__`, else the classes and functions that it defines."""
    module = importlib.import_module(name)
    defined = [key for key, item in vars(module).items() if getattr(item, "__module__", None) == name and not key.startswith("_")]
    names = getattr(module, "__all__", defined)
    yield from ((key, getattr(module, key)) for key in names)


def _alias(name: str, item: Any) -> tuple[str, str]:
    """Return the heading of a type that has a name, as its module has it, and the comment beside it."""
    for module in (module for key, module in sorted(sys.modules.items()) if key.startswith("tuneoff.")):
        if vars(module).get(name) is item and (match := re.search(rf"^{name} = (.+)$", inspect.getsource(module), re.MULTILINE)):
            value, _, comment = match[1].partition("  # ")
            return f"## `{name} = {value}`", comment
    return f"## `{name}`", ""


def _class(item: type) -> Iterator[str]:
    fields = [field for field in dataclasses.fields(item) if field.init] if dataclasses.is_dataclass(item) else []
    keywords = "Its arguments are keywords only." if fields and all(field.kw_only for field in fields) else ""
    yield "\n\n".join(filter(None, (f"## `class {item.__name__}`", inspect.getdoc(item), keywords)))
    if issubclass(item, enum.Enum):
        yield "\n".join(f"- `{member.name}`: {member.value}" for member in item)
    if lines := list(_fields(item)):
        yield "\n".join(lines)
    for name, member in vars(item).items():
        if name.startswith("_") and (name != "__init__" or fields or getattr(item, "_is_protocol", False)):
            continue
        if isinstance(member, property):
            yield f"### `{item.__name__}.{name}`\n\n{inspect.getdoc(member) or ''}".rstrip()
        elif isinstance(member, FunctionType | classmethod | staticmethod):
            yield _function(getattr(item, name), f"### `{item.__name__}.", name)


def _fields(item: type) -> Iterator[str]:
    """Yield the fields of a class as they are written, in Markdown: `name: type = default`, and the comment beside it."""
    comments = field_comments(item)
    fields = {field.name: field for field in dataclasses.fields(item)} if dataclasses.is_dataclass(item) else {}
    for name, kind in inspect.get_annotations(item).items():
        written = kind.__forward_arg__ if isinstance(kind, ForwardRef) else kind
        default = _default(item, name, fields.get(name))
        yield f"- `{name}: {written}{default and f' = {default}'}`" + (f": {comments[name]}" if name in comments else "")


def _default(item: type, name: str, field: dataclasses.Field[Any] | None) -> str:
    """Return what a field is where it is left out, "" where it may not be."""
    if field is not None:
        factory: Any = field.default_factory
        if factory is not dataclasses.MISSING:
            return f"{getattr(factory, '__name__', '...')}()"
        return "" if field.default is dataclasses.MISSING else repr(field.default)
    if issubclass(item, tuple):
        defaults: dict[str, Any] = getattr(item, "_field_defaults", {})
        return repr(defaults[name]) if name in defaults else ""
    value = vars(item).get(name, dataclasses.MISSING)
    return "" if value is dataclasses.MISSING or inspect.ismemberdescriptor(value) else repr(value)


def _function(item: Any, head: str, name: str = "") -> str:
    """Return the signature and the docstring of a function; `name`: of a method, whose class `head` ends with."""
    signature = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(inspect.signature(item)))  # annotations are not evaluated
    signature = re.sub(r"<function \S+ at 0x[0-9a-f]+>", "...", signature)
    text = inspect.getdoc(item) if name != "__init__" else inspect.cleandoc(item.__doc__ or "")  # not that of `object`
    return f"{head if name else f'{head}`'}{name or item.__name__}{signature}`\n\n{text or ''}".rstrip()
