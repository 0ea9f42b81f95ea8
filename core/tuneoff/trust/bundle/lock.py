"""The lock of a bundle: which versions of which packages served its runs."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tuneoff.trust.bundle.contents import BundledExecution

OWN = "tuneoff"  # comes from a clone, not from the index


def lock_of(found: Iterable[BundledExecution], installed: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the lock as JSON values.

    `recorded`: package -> versions, as the runs' own records have them. `installed`: every package of the environment in
    which the bundle is made, if that one still has the recorded versions; else None, and `reason` says what differs.
    """
    packages: dict[str, set[str]] = {}
    pythons: set[str] = set()
    for execution in found:
        environment = {} if execution.record is None else execution.record.environment
        if isinstance(environment.get("python"), str):
            pythons.add(environment["python"])
        for name, version in (environment.get("versions") or {}).items():
            if isinstance(version, str):
                packages.setdefault(name, set()).add(version)
    recorded = {name: sorted(packages[name]) for name in sorted(packages)}
    here = installed_packages() if installed is None else dict(installed)
    reason = _difference(recorded, here)
    return {
        "python": sorted(pythons),
        "recorded": recorded,
        "installed": None if reason else dict(sorted(here.items())),
        "reason": reason,
    }


def lock_text(lock: Mapping[str, Any]) -> str:
    """Return the lock as a requirements file."""
    lines = [f"# Python {', '.join(lock['python']) or 'unknown'}", "# as the runs recorded it:"]
    for name, versions in lock["recorded"].items():
        line = f"{name}=={versions[0]}"
        if name == OWN:
            line = f"# {line} (from its repository)"
        elif len(versions) > 1:
            line = f"# {name}: the runs had different versions: {', '.join(versions)}"
        lines.append(line)
    if lock["installed"] is None:
        lines.append(f"# packages beneath these are not known: {lock['reason']}")
        return "\n".join(lines) + "\n"
    lines.append("# what else was installed where the bundle was made:")
    known = {canonical(name) for name in (*lock["recorded"], OWN)}
    lines += [f"{name}=={version}" for name, version in lock["installed"].items() if canonical(name) not in known]
    return "\n".join(lines) + "\n"


def installed_packages() -> dict[str, str]:
    """Return every installed distribution and its version."""
    found: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        metadata = distribution.metadata  # which is read anew each time
        name = metadata["Name"]
        if name:  # a broken installation has none
            found.setdefault(canonical(name), metadata["Version"])  # the first on the path is the one that is imported
    return found


def canonical(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _difference(recorded: Mapping[str, list[str]], here: Mapping[str, str]) -> str | None:
    for name, versions in recorded.items():
        found = here.get(canonical(name))
        if found is not None and versions == [found]:
            continue
        now = f"{found} is installed" if found else "it is not installed"
        return f"the runs had {name} {' and '.join(versions)}, but where the bundle was made {now}"
    return None if recorded else "no run recorded its packages"
