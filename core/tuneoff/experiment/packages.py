"""Whether a framework's package is there, found without importing it; missing, too old and broken are told apart."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Literal

from tuneoff.capabilities import Capabilities
from tuneoff.errors import MissingPackageError, PluginError

State = Literal["ready", "missing", "too old", "too new", "broken"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageStatus:
    """State of a package, its version ("" where unknown), and for any state but `ready` one line with the way out."""

    state: State
    version: str = ""
    text: str = ""


def framework_status(adapter: str, capabilities: Capabilities) -> PackageStatus:
    """Return the state of the framework that `adapter` drives; imports nothing."""
    if not capabilities.package:
        return PackageStatus(state="ready")
    version, present = installed_version(capabilities.package), module_exists(capabilities.module)
    command = install_command(capabilities.install or capabilities.package)
    if version is None and not present:
        text = f"adapter {adapter!r} needs the {capabilities.package} package; run: {command}"
        return PackageStatus(state="missing", text=text)
    if not present:
        text = f"{capabilities.package} {version} is installed, but its module {capabilities.module!r} is not; run: {command}"
        return PackageStatus(state="broken", version=version or "", text=text)
    if version is None:  # a source tree on the path: there is nothing to compare
        return PackageStatus(state="ready", version="unknown")
    wanted = _wanted(capabilities)
    if capabilities.minimum_version and release(version) < release(capabilities.minimum_version):
        text = f"adapter {adapter!r} needs {wanted}, but {version} is installed; run: {command}"
        return PackageStatus(state="too old", version=version, text=text)
    if capabilities.below_version and release(version) >= release(capabilities.below_version):
        text = f"adapter {adapter!r} needs {wanted}, but {version} is installed; run: {command}"
        return PackageStatus(state="too new", version=version, text=text)
    return PackageStatus(state="ready", version=version)


def missing_modules(names: Iterable[str]) -> list[str]:
    """Return which of the modules do not exist; imports nothing."""
    return [name for name in names if not module_exists(name)]


def need_scipy(what: str) -> None:
    """Raise MissingPackageError in one line where scipy is not installed."""
    if missing_modules(("scipy",)):
        raise MissingPackageError(f"{what} needs scipy for its tests; run: {install_command('tuneoff[stats]')}")


def import_framework(adapter: str, capabilities: Capabilities) -> ModuleType:
    """Import the framework's module and return it; the first thing that `deploy` does.

    Raises:
        MissingPackageError: it is not installed, or its version is out of range.
        PluginError: it is installed, but its import fails.
    """
    status = framework_status(adapter, capabilities)
    if status.state == "broken":
        raise PluginError(status.text)
    if status.state != "ready":
        raise MissingPackageError(status.text)
    try:
        return importlib.import_module(capabilities.module)
    except Exception as error:  # a broken installation fails in any way while it is imported
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise PluginError(
            f"{capabilities.package} {status.version} is installed, but importing {capabilities.module!r} fails: {cause}; "
            f"run: {install_command(capabilities.install or capabilities.package)}"
        ) from error


def installed_version(package: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def module_exists(name: str) -> bool:
    """Tell whether the top-level module of `name` can be found; a submodule would import its parent."""
    try:
        return importlib.util.find_spec(name.partition(".")[0]) is not None
    except (ImportError, ValueError):  # ValueError: a half-imported module without a spec
        return False


def install_command(requirement: str) -> str:
    return f"pip install '{requirement}'"


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


def _wanted(capabilities: Capabilities) -> str:
    bounds = [
        f"{sign} {bound}" for sign, bound in ((">=", capabilities.minimum_version), ("<", capabilities.below_version)) if bound
    ]
    return f"{capabilities.package} {', '.join(bounds)}"
