"""Objects named by text: "module:Name"."""

from __future__ import annotations

import importlib
from typing import Any

from tuneoff.errors import PluginError


def load_target(target: str) -> Any:
    """Import "module:Name" and return the object.

    Raises:
        PluginError: the module or the name does not exist, or fails while importing.
    """
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except Exception as error:  # a plugin may fail in any way while it is imported
        raise PluginError(f"{target!r} cannot be imported: {type(error).__name__}: {error}") from error
