"""Which tuneoff this is, to the letter: versions do not tell two commits apart."""

from __future__ import annotations

import functools
import hashlib
import importlib
from pathlib import Path

PACKAGES = ("tuneoff", "tuneoff_adapters", "tuneoff_faults", "tuneoff_workloads")  # own ones, of which a trial may run something
SUFFIXES = (".py", ".html", ".css", ".js", ".toml", ".json", ".yaml")


@functools.cache
def code_digest() -> str:
    """Return the SHA-256 (hex) over names and contents of the packages' code, templates and tables, as they were when it was
    first asked."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        root = Path(importlib.import_module(package).__path__[0])
        for path in sorted(path for path in root.rglob("*") if path.suffix in SUFFIXES):
            content = path.read_bytes()
            digest.update(f"{package}/{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
