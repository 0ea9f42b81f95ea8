"""What an environment of an adapter's own is made from, and where it lies: from a run's specification alone; makes nothing.

It is kept in the user's cache under the digest of what it is made from, so that a later command finds it without a network.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuneoff import registry
from tuneoff.base.capabilities import LOCAL, Capabilities, Offer, version_problem
from tuneoff.base.commands import OWN, libraries
from tuneoff.base.identity import digest
from tuneoff.base.json_values import field_values
from tuneoff.base.packages import COMMON_PACKAGES, canonical, distributions
from tuneoff.base.processes import run_to_end
from tuneoff.errors import UnsupportedError
from tuneoff.experiment.spec import RunSpec

CACHE_VARIABLE = "TUNEOFF_CACHE_DIR"
NOT_OF_CODE = ("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json")  # how and where it was installed
_NAME = re.compile(r"([A-Za-z0-9][\w.-]*)(\[[\w,.-]+\])?")
_PYTHON_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What an environment is made from: its base Python (path and version), what an index is asked for, the versions that it has
    in common with the command's environment, and the installed distributions that go in as they are, with a digest of each.
    """

    python: str
    python_version: str
    requirements: tuple[str, ...]
    constraints: tuple[str, ...]
    copied: tuple[tuple[str, str], ...]

    @property
    def digest(self) -> str:
        return digest(field_values(self))

    @property
    def folder(self) -> Path:
        return cache() / self.digest


def cache() -> Path:
    """Return the folder of all environments."""
    general = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / OWN
    return Path(os.environ.get(CACHE_VARIABLE) or general).absolute() / "environments"


def interpreter(spec: RunSpec) -> str:
    """Return the Python of a run's coordinator and of all that it starts; that of an environment need not be there yet."""
    return sys.executable if spec.environment is None else str(recipe_of(spec).folder / "bin/python")


def recipe_of(spec: RunSpec) -> Recipe:
    """Return what the environment of a run is made from.

    Raises:
        UnsupportedError: it asks for a Python that this machine does not have.
    """
    assert spec.environment is not None
    plugins = (registry.find("adapter", spec.adapter), registry.find("workload", spec.experiment.workload.name))
    copied = dict.fromkeys(filter(None, (OWN, *(plugin.distribution for plugin in plugins))))
    requirements = tuple(dict.fromkeys(_requirements(spec)))
    names = dict.fromkeys(
        canonical(name_of(requirement)) for requirement in (*COMMON_PACKAGES, *_requirements_of_tuneoff(), *requirements)
    )
    here = distributions(sys.path)
    chosen = {canonical(name_of(text)) for text in (_framework(spec), *spec.environment.packages) if text}
    common = [f"{name}=={here[name].partition('+')[0]}" for name in names if name in here and name not in chosen]
    path, version = base_python(spec.environment.python)
    return Recipe(
        python=path,
        python_version=version,
        requirements=requirements,
        constraints=spec.locked or tuple(sorted(common)),
        copied=tuple((name, code_of(name)) for name in copied),
    )


def refusals(spec: RunSpec) -> Iterator[str]:
    """Yield why a run cannot have the environment of its own that it asks for."""
    if spec.environment is None:
        return
    adapter = registry.adapter_class(spec.adapter)
    capabilities, version = adapter.capabilities_on(spec.platform), spec.environment.version
    label = f"{spec.adapter}{spec.environment.text}"
    if spec.platform != LOCAL or adapter.placement(spec) is not None:
        yield (
            f"{label} has an environment of its own, which platform {LOCAL!r} alone can use, but it runs on {spec.platform!r} or "
            f"on other hosts; install the release there, and name it {spec.adapter}"
        )
    if version is not None and not capabilities.package:
        yield f"adapter {spec.adapter!r} has no framework, so no release can be chosen; leave out =={version}"
    elif version is not None and (problem := version_problem(spec.adapter, capabilities, version)) is not None:
        yield f"{problem[1]}, but {version} is asked for"
    try:
        base_python(spec.environment.python)
    except UnsupportedError as error:
        yield str(error)


@functools.cache
def base_python(version: str | None) -> tuple[str, str]:
    """Return the path and the version of an interpreter outside of any environment; None: of this process's version.

    Raises:
        UnsupportedError: none of that version is on this machine.
    """
    if version is None or f"{platform.python_version()}.".startswith(f"{version}."):
        return os.path.realpath(sys.executable), platform.python_version()
    name = f"python{'.'.join(version.split('.')[:2])}"
    if (path := shutil.which(name)) is not None:
        try:
            ended = run_to_end([path, "-c", "import platform; print(platform.python_version())"], _PYTHON_SECONDS)
        except (OSError, TimeoutError):
            ended = None
        if ended is not None and ended.code == 0 and f"{ended.output.strip()}.".startswith(f"{version}."):
            return os.path.realpath(path), ended.output.strip()
    raise UnsupportedError(
        f"Python {version} must be on this machine, but PATH has no such {name}; install it, or leave `python` out"
    )


def name_of(requirement: str) -> str:
    """Return the name in a requirement."""
    match = _NAME.match(requirement)
    return match[1] if match is not None else ""


def _framework(spec: RunSpec) -> str:
    """Return the distribution of the framework whose release is chosen; "" where none is."""
    chosen = spec.environment is not None and spec.environment.version is not None
    return registry.adapter_class(spec.adapter).capabilities_on(spec.platform).package if chosen else ""


def _requirements(spec: RunSpec) -> Iterator[str]:
    """Yield what an index is asked for: the framework, what its adapter, sampler, pruner and workload need, and what is added."""
    adapter = registry.adapter_class(spec.adapter)
    capabilities: Capabilities = adapter.capabilities_on(spec.platform)
    workload = registry.workload_class(spec.experiment.workload.name)
    environment, framework = spec.environment, canonical(_framework(spec))
    assert environment is not None
    offers = (capabilities.samplers.get(spec.experiment.sampler.name), capabilities.pruners.get(spec.experiment.pruner.name))
    needs = [need for offer in offers for need in (offer or Offer()).needs]
    own = [capabilities.install or capabilities.package] if capabilities.package else []
    added = {canonical(name_of(package)) for package in environment.packages}
    for requirement in (
        library for text in (*own, *needs, *adapter.requirements(spec), *workload.requirements) for library in libraries(text)
    ):
        match, name = _NAME.match(requirement), canonical(name_of(requirement))
        if framework and name == framework:
            yield f"{match[0] if match else name}=={environment.version}"
        elif name not in added:
            yield requirement
    yield from environment.packages


def _requirements_of_tuneoff() -> list[str]:
    from importlib import metadata

    try:
        return [text for text in metadata.requires(OWN) or () if "extra ==" not in text]
    except metadata.PackageNotFoundError:  # a source tree on the path
        return []


@functools.cache
def code_of(distribution: str) -> str:
    """Return the digest of an installed distribution's files: of an editable one, what leads to its code."""
    from importlib import metadata

    total, installed = hashlib.sha256(), metadata.distribution(distribution)
    for file in sorted(files_of(distribution)):
        total.update(f"{file}\0".encode() + hashlib.sha256(Path(str(installed.locate_file(file))).read_bytes()).digest())
    return total.hexdigest()[:16]


def files_of(distribution: str) -> Iterator[str]:
    """Yield the files of an installed distribution that another environment needs, by their names in it."""
    from importlib import metadata

    for file in metadata.distribution(distribution).files or ():
        if file.parts[0] != ".." and file.name not in NOT_OF_CODE and file.suffix != ".pyc":
            yield str(file)
