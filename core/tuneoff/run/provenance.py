"""Which data and code a run's workload uses: declared before a matrix, looked at again after each of its runs."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.files import sha256_of
from tuneoff.base.terminal import output_as_errors
from tuneoff.experiment.spec import WorkloadSpec
from tuneoff.record.environment import git_remote, git_state
from tuneoff.workload import DataDescription, new_workload

_INSTALLED = ("site-packages", "dist-packages")  # a git repository above them is not that of the code


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a workload declared before the first run: its data, and where its code comes from, as JSON values."""

    target: str
    data: DataDescription
    code: Mapping[str, Any]

    def environment(self) -> dict[str, Any]:
        """Return what was declared, and under `after` the digests of data and code as they are now, for a run's record."""
        digests: dict[str, str | None] = {}  # None: it cannot be read
        for name, path in self.data.paths.items():
            try:
                digests[name] = sha256_of(Path(path), follow=True)
            except OSError:
                digests[name] = None
        size: int | None = None
        with contextlib.suppress(OSError):
            size = sum(Path(path).stat().st_size for path in self.data.paths.values()) if digests else None
        _, folder, files = _code(self.target)
        after = {"data": digests or None, "data_bytes": size, "code": _digest(folder, files)}
        return {"data": asdict(self.data), "workload": dict(self.code), "after": after}


def prepare(workload: WorkloadSpec) -> Provenance:
    """Make a workload's data available and return what it declares.

    Raises:
        DataError: the data are not there.
    """
    instance = new_workload(workload.target, workload.options)
    with output_as_errors():
        data = instance.prepare()
    package, folder, files = _code(workload.target)
    git = None
    if folder is not None and not set(folder.parts) & set(_INSTALLED):
        state = git_state(folder)
        git = None if state is None else {"url": git_remote(folder), "commit": state["commit"]}
    code = {
        "package": package,
        "version": instance.version,
        "training_algorithm": instance.training_algorithm,
        "files": len(files),
        "sha256": _digest(folder, files),
        "git": git,
    }
    return Provenance(target=workload.target, data=data, code=code)


def _code(target: str) -> tuple[str, Path | None, list[Path]]:
    """Return the package (or module) of a workload, its folder, and its Python files in a fixed order."""
    module = target.partition(":")[0]
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):  # ValueError: a half-imported module without a spec
        return module, None, []
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return module, None, []
    origin = Path(spec.origin).resolve()
    if not spec.parent:
        return module, origin.parent, [origin]
    return spec.parent, origin.parent, sorted(path for path in origin.parent.rglob("*.py") if path.is_file())


def _digest(folder: Path | None, files: list[Path]) -> str | None:
    """Return the SHA-256 over names and contents, or None where a file cannot be read or there is none."""
    if folder is None or not files:
        return None
    total = hashlib.sha256()
    try:
        for path in files:
            total.update(f"{path.relative_to(folder).as_posix()}\0".encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    except OSError:
        return None
    return total.hexdigest()
