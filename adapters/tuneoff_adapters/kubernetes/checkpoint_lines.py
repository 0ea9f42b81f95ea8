"""A trial's best checkpoint on its way through the log of its pod: JSON lines beside the events.

    {"checkpoint":{"part":0,"of":2,"data":"<base64>"}}
    {"checkpoint":{"part":1,"of":2,"data":"<base64>","sha256":"<of the whole file, in hex>"}}

or, in place of a file that is too large for the log, {"checkpoint":{"bytes":9000000,"most":6000000}}.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator
from typing import Any

from tuneoff.errors import CheckpointError

KEY = "checkpoint"
PREFIX = b'{"checkpoint":'  # how each line begins
PART_BYTES = 9000  # of the file: 12 000 characters of base64; a container's runtime splits lines beyond 16 KiB
LOG_BYTES = 6_000_000  # largest file by default: 8 MB of lines, where a node throws a log away at 10 MiB
UNLIMITED_LOG_BYTES = 256_000_000  # where the log is a file that nobody cuts (the emulated platform)


def encode(content: bytes, most_bytes: int = LOG_BYTES) -> Iterator[bytes]:
    """Yield the lines for a checkpoint file; the one line that says so where it has more than `most_bytes`."""
    if len(content) > most_bytes:
        yield _line({"bytes": len(content), "most": most_bytes})
        return
    count = max(1, -(-len(content) // PART_BYTES))
    for part in range(count):
        data = base64.b64encode(content[part * PART_BYTES : (part + 1) * PART_BYTES]).decode()
        last = {"sha256": hashlib.sha256(content).hexdigest()} if part == count - 1 else {}
        yield _line({"part": part, "of": count, "data": data, **last})


class CheckpointLines:
    """Collects the lines of one trial, in any order and as often as a log is read again."""

    def __init__(self) -> None:
        self._parts: dict[int, bytes] = {}
        self._count: int | None = None
        self._sha256: str | None = None
        self._too_large: tuple[int, int] | None = None
        self._broken: str | None = None

    def add(self, line: bytes) -> bool:
        """Take in a log line; tell whether it is one of a checkpoint's. A broken one is told by `content`, not here."""
        if not line.startswith(PREFIX):
            return False
        try:
            self._take(json.loads(line)[KEY])
        except (ValueError, KeyError, TypeError, binascii.Error) as error:
            self._broken = f"{type(error).__name__}: {error}"
        return True

    @property
    def is_empty(self) -> bool:
        """Whether no line of a checkpoint was seen: the trial keeps none, or never came so far."""
        return not self._parts and self._too_large is None and self._broken is None

    def content(self) -> bytes:
        """Return the file, bit for bit.

        Raises:
            CheckpointError: it was too large for the log, or lines are missing or damaged.
        """
        if self._too_large is not None:
            size, most = self._too_large
            raise CheckpointError(
                f"a checkpoint passes through its pod's log and may have at most {most} bytes, but this one has {size}; "
                "make the model smaller"
            )
        count = len(self._parts)
        if self._count is None or count != self._count:
            broken = f" ({self._broken})" if self._broken else ""
            raise CheckpointError(
                f"a checkpoint must arrive in whole, but {count} of its {self._count or 'unknown'} lines were in the pod's log"
                f"{broken}; run the trial again"
            )
        content = b"".join(self._parts[part] for part in range(self._count))
        if hashlib.sha256(content).hexdigest() != self._sha256:
            raise CheckpointError(
                "a checkpoint must arrive unchanged, but its SHA-256 differs from the pod's; run the trial again"
            )
        return content

    def _take(self, fields: dict[str, Any]) -> None:
        if "bytes" in fields:
            self._too_large = int(fields["bytes"]), int(fields["most"])
            return
        part, count = int(fields["part"]), int(fields["of"])
        if not 0 <= part < count or self._count not in (None, count):
            raise ValueError(f"part {part} of {count}")
        self._parts[part] = base64.b64decode(fields["data"], validate=True)
        self._count = count
        self._sha256 = fields.get("sha256", self._sha256)


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps({KEY: fields}, separators=(",", ":")).encode() + b"\n"
