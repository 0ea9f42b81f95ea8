"""What the author of a plugin imports, as the code that declares it: fields, signatures, comments and docstrings, no bodies."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any

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
        parts.append(f"# {module}\n\n{inspect.getdoc(importlib.import_module(module)) or ''}")
        for key, item in _exported(module):
            if id(item) not in seen:
                seen.add(id(item))
                parts.append(declaration(key, item))
    return "\n\n".join(parts)


def interface_items() -> dict[str, Any]:
    """Return all classes, functions and types of the interfaces by their names."""
    return {key: item for modules in INTERFACES.values() for module in modules for key, item in _exported(module)}


def declaration(name: str, item: Any) -> str:
    """Return the lines that declare it: of functions all but what they do, of a class what is public."""
    if not isinstance(item, type | FunctionType):
        return _alias(name, item)
    source = textwrap.dedent(inspect.getsource(item))
    hidden = set[int]()  # numbers of lines, from 1
    for part in ast.walk(ast.parse(source)):
        if isinstance(part, ast.FunctionDef) and part.body[0].lineno > part.lineno:
            does = part.body[ast.get_docstring(part) is not None :]
            first = does[0].lineno if does else sys.maxsize
            if part.name.startswith("_") and part.name != "__init__":
                first = part.decorator_list[0].lineno if part.decorator_list else part.lineno
            hidden.update(range(first, (part.end_lineno or 0) + 1))
    lines = (line for number, line in enumerate(source.splitlines(), 1) if number not in hidden)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip()


def first_line(name: str, item: Any) -> str:
    """Return in one line what it is."""
    is_own = isinstance(item, type | FunctionType)
    return one_line((inspect.getdoc(item) or "").partition("\n\n")[0]) if is_own else _alias(name, item).partition("  # ")[2]


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


def _alias(name: str, item: Any) -> str:
    """Return the line that gives a type its name, as its module has it."""
    for module in (module for key, module in sorted(sys.modules.items()) if key.startswith("tuneoff.")):
        if vars(module).get(name) is item and (line := re.search(rf"^{name} = .+$", inspect.getsource(module), re.MULTILINE)):
            return line[0]
    return name
