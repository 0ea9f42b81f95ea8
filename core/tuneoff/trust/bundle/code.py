"""Which tuneoff this is, beyond its version number: a digest of its sources, equal in every clone of the same commit."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import tuneoff


@functools.cache
def code_digest() -> str:
    """Return the SHA-256 over names and contents of the Python sources of `tuneoff`."""
    folder = Path(tuneoff.__file__).parent
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        total.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
