"""A folder of wheels in the place of a package index: stubs of what tuneoff needs, in the versions that are installed here."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Sequence
from importlib import metadata
from io import BytesIO
from pathlib import Path

import pytest

from tuneoff.experiment.environments import name_of


def write_wheel(folder: Path, name: str, version: str, needs: Sequence[str] = (), megabytes: float = 0) -> None:
    """Write a wheel with a module of its name, which has its version."""
    module = name.replace("-", "_").lower()
    described = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" + "".join(
        f"Requires-Dist: {need}\n" for need in needs
    )
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}/__init__.py", f"__version__ = {version!r}\n#{'x' * round(megabytes * 1e6)}\n")
        wheel.writestr(f"{module}-{version}.dist-info/METADATA", described)
        wheel.writestr(f"{module}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{module}-{version}.dist-info/RECORD", f"{module}/__init__.py,,\n")


def write_source(folder: Path, name: str, script: str) -> None:
    """Write a source distribution whose build backend runs `script` as it is imported."""
    backend = f'[project]\nname = "{name}"\nversion = "1.0"\n'
    backend += '[build-system]\nrequires = []\nbuild-backend = "building"\nbackend-path = ["."]\n'
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for file, text in (("pyproject.toml", backend), ("building.py", script)):
            entry = tarfile.TarInfo(f"{name}-1.0/{file}")
            entry.size = len(text.encode())
            archive.addfile(entry, BytesIO(text.encode()))


def stub_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let pip's settings name `folder/index`, and nothing else, with stubs of what tuneoff and Optuna's adapter need.

    The cache of this user is below `folder`.
    """
    index = folder / "index"
    index.mkdir()
    for requirement in metadata.requires("tuneoff") or ():
        if "extra ==" not in requirement:
            write_wheel(index, name_of(requirement), metadata.version(name_of(requirement)))
    write_wheel(index, "cmaes", "0.13.1")
    for version in ("4.5.0", "4.6.0", "5.0.0"):
        write_wheel(index, "optuna", version, ["numpy"])
    for name, value in (("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", str(index)), ("TUNEOFF_CACHE_DIR", str(folder / "cache"))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UV_CACHE_DIR", str(folder / "uv"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return index
