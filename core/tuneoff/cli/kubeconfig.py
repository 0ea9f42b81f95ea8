"""What is wrong with a kubeconfig, as far as its text tells: it is read as YAML, without the client and without its cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml


def kubeconfig_problem(paths: Sequence[Path]) -> str | None:
    """Return why files that are merged as kubectl does it name no cluster, with a way out; None where they do.

    Of a name that several files give, the first counts.
    """
    files = []
    for path in paths:
        try:
            content = yaml.safe_load(path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no text"
            return f"{path} cannot be read: {reason}; correct it, or name another in KUBECONFIG"
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            first = " ".join(str(error).split())[:120]
            return f"{path} is no YAML: {first}; correct it, or name another in KUBECONFIG"
        if content is not None and not isinstance(content, dict):
            return f"{path} must be a mapping, but is not; correct it, or name another in KUBECONFIG"
        files.append(content or {})
    shown, way_out = ", ".join(map(str, paths)), "run: kubectl config use-context NAME, or give katib the option `context`"
    current = next((file["current-context"] for file in files if file.get("current-context")), None)
    if current is None:
        return f"{shown} has no current-context; {way_out}"
    context = _named(files, "contexts", "context", current)
    if context is None:
        return f"{shown} has no context {current!r}, which is its current-context; {way_out}"
    cluster = _named(files, "clusters", "cluster", context.get("cluster"))
    if cluster is None or not cluster.get("server"):
        return f"{shown}: context {current!r} names no cluster with a server; {way_out}"
    return None


def _named(files: Sequence[dict[str, Any]], plural: str, key: str, name: object) -> dict[str, Any] | None:
    for entry in _entries(files, plural):
        if entry.get("name") == name:
            found = entry.get(key)
            return found if isinstance(found, dict) else None
    return None


def _entries(files: Sequence[dict[str, Any]], plural: str) -> Iterator[dict[str, Any]]:
    for file in files:
        listed = file.get(plural)
        yield from (entry for entry in listed if isinstance(entry, dict)) if isinstance(listed, list) else ()
