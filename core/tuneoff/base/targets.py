"""Names given as text: the object that "module:Name" is, and the way out of a mistyped one (the nearest known, and the list)."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
from collections.abc import Iterable
from typing import Any

from tuneoff.base.terminal import output_as_errors
from tuneoff.base.tracebacks import text_of
from tuneoff.errors import PluginError


def load_target(target: str) -> Any:
    """Import "module:Name" and return the object, or of "module" the module. While it is imported, `sys.argv` is its file alone.

    Raises:
        PluginError: the module or the name does not exist, or fails while importing.
    """
    module, colon, name = target.partition(":")
    try:
        # where another thread is importing it, `import_module` waits for the end of that
        imported = importlib.import_module(module) if module in sys.modules else _imported(module)
        if not colon:
            return imported
        if hasattr(imported, name):
            return getattr(imported, name)
    except SystemExit as error:
        raise PluginError(f"{target!r} ends the process while it is imported (exit code {error.code})") from error
    except Exception as error:  # a plugin may fail in any way while it is imported, its own `__getattr__` too
        raise PluginError(f"{target!r} cannot be imported: {type(error).__name__}: {text_of(error)}") from error
    raise PluginError(f"{target!r} must exist, but {module} has no {name!r}{nearest(name, dir(imported))}")


def _imported(module: str) -> Any:
    before = sys.argv
    try:
        above = itertools.accumulate(module.split("."), "{}.{}".format)
        with output_as_errors():
            for name in above:  # one after another: to look for a module imports the package above it
                sys.argv = [file_of(name)]
            return importlib.import_module(module)
    finally:
        sys.argv = before


def file_of(module: str) -> str:
    """Return the file of a module, imported or not, or its name where it has none or cannot be found."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return module
    return spec.origin if spec is not None and spec.has_location and spec.origin is not None else module


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return one line: no `kind` of that name, the nearest known one if there is any, and all known ones."""
    names = sorted(allowed)
    return f"no {kind} named {name!r}{nearest(name, names)}; known: {', '.join(names) or 'none'}"


def unknown_option(whose: str, names: Iterable[object], options: Iterable[str]) -> str | None:
    """Return one line on the first of the names that `whose` does not have, with the nearest option and all; None: it has all."""
    listed = list(options)
    for name in names:
        if name not in listed:
            has = f"it has: {', '.join(listed)}" if listed else "it has none"
            return f"{whose} has no option {name!r}{nearest(name, listed)}; {has}"
    return None


def nearest(name: object, candidates: Iterable[str], cutoff: float = 0.6) -> str:
    """Return "; did you mean 'x'?" for the known name most like `name`, or "" where none is alike.

    `cutoff`: the least similarity (0 to 1); among many names a low one finds what is far-fetched.
    """
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in candidates}
    lower = str(name).lower()
    begun = [candidate for candidate in by_lower if candidate.startswith(f"{lower}-")]  # "ray" of "ray-tune"
    matches = difflib.get_close_matches(lower, by_lower, n=1, cutoff=cutoff) or begun
    return f"; did you mean {by_lower[matches[0]]!r}?" if matches else ""
