"""Which packages and modules are there, found without importing them."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path

import tuneoff

COMMON_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "msgspec", "pydantic", "safetensors")  # that training may use


def missing_modules(names: Iterable[str]) -> list[str]:
    """Return which of the modules do not exist; imports nothing."""
    return [name for name in names if not module_exists(name)]


def installed_version(package: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def canonical(name: str) -> str:
    """Return a distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def distributions(folders: Iterable[str]) -> dict[str, str]:
    """Return the versions of the distributions in folders of a path by their canonical names, the first one of each."""
    versions: dict[str, str] = {}
    for folder in filter(os.path.isdir, folders):
        for entry in sorted(os.listdir(folder)):
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            if version and entry.endswith(".dist-info"):
                versions.setdefault(canonical(name), version)
    return versions


def module_versions(names: Iterable[str]) -> list[str]:
    """Return name and version of the distributions of the modules, but for tuneoff, whose code has a digest; imports nothing."""
    from importlib import metadata

    distributions = metadata.packages_distributions()
    installed = {distribution for name in names for distribution in distributions.get(name.partition(".")[0], ())} - {"tuneoff"}
    return [f"{distribution} {installed_version(distribution)}" for distribution in sorted(installed)]


def module_exists(name: str) -> bool:
    """Tell whether the top-level module of `name` can be found; a submodule would import its parent."""
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):  # ValueError: a half-imported module without a spec
        return False


def travelling_folder(name: str) -> Path:
    """Return a folder that travels with tuneoff: in an installed package it lies beside the modules, else in the checkout."""
    package = Path(tuneoff.__file__).parent
    return package / name if (package / name).is_dir() else package.parents[1] / name


def experiments() -> dict[str, Path]:
    """Return the experiments that come with tuneoff, by name."""
    folder = travelling_folder("benchmarks")
    return {path.stem: path for path in (*sorted(folder.glob("catalogue/*.yaml")), *sorted(folder.glob("*.yaml")))}


def release(version: str) -> tuple[int, ...]:
    """Return the release numbers of a version without trailing zeros: "2.60.0rc1" is (2, 60)."""
    numbers: list[int] = []
    for part in version.split("!")[-1].split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            numbers.append(int(digits))
        if digits != part:
            break
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
