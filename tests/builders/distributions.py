"""Installed distributions for tests: what pip leaves of a plugin, in a folder that is put on the path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    folder: Path,
    name: str = "third_party",
    *,
    adapters: Mapping[str, str] | None = None,
    workloads: Mapping[str, str] | None = None,
    platforms: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | None = None,
) -> Path:
    """Write a distribution with these entry points ("module:Class" by name) and modules (source by name) and return `folder`."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = {"adapters": adapters or {}, "workloads": workloads or {}, "platforms": platforms or {}}
    lines = [
        f"[tuneoff.{group}]\n" + "".join(f"{key} = {target}\n" for key, target in own.items()) for group, own in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for module, source in (modules or {}).items():
        (folder / f"{module}.py").write_text(source)
    return folder
