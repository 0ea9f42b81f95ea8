"""Keep secrets out of bundles: values of the environment that are named like secrets, and passwords in addresses."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tuneoff.base.files import open_regular
from tuneoff.errors import ResultsError
from tuneoff.trust.bundle.archive import Content

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIAL", re.IGNORECASE)
_PASSWORD = re.compile(rb"[a-z0-9+.-]://[^\s/@:\"']+:[^\s/@\"']+@", re.IGNORECASE)
PIECE, OVERLAP = 16_000_000, 100_000  # bytes: no secret and no address is longer than the second
SHORTEST = 8  # characters: shorter values occur by chance


def check_no_secrets(contents: Mapping[str, Content], environment: Mapping[str, str] | None = None) -> None:
    """Refuse contents in which a secret of this environment, or an address with a password, occurs.

    Raises:
        ResultsError: one does; the line names the file and the variable, never the value.
    """
    values = os.environ if environment is None else environment
    secrets = {
        name: value.encode()
        for name, value in values.items()
        if _SECRET_NAME.search(name) and len(value) >= SHORTEST and not os.path.exists(value)
    }
    for path, content in contents.items():
        if path.endswith(".safetensors"):  # numbers
            continue
        found = next(filter(None, (_found(piece, secrets) for piece in _pieces(content))), None)
        if found is not None:
            raise ResultsError(f"{path} holds {found}; a bundle is for others: remove it from the experiment and run again")


def _pieces(content: Content) -> Iterator[bytes]:
    """Yield a content in pieces that overlap, so that a file of any size takes little memory."""
    if not isinstance(content, Path):
        yield content
        return
    tail = b""
    with open_regular(content) as file:
        while part := file.read(PIECE):
            yield tail + part
            tail = (tail + part)[-OVERLAP:]


def _found(content: bytes, secrets: Mapping[str, bytes]) -> str | None:
    for name, value in secrets.items():
        if value in content:
            return f"the value of the environment variable {name}"
    return "an address with a password" if _PASSWORD.search(content) else None
