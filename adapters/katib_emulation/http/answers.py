"""What goes back to a client: one answer, or a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: an object as JSON, or plain text."""

    code: int
    body: dict[str, Any] | bytes

    def content(self) -> tuple[bytes, str]:
        """Return (bytes, content type)."""
        if isinstance(self.body, bytes):
            return self.body, "text/plain"
        return json.dumps(self.body, separators=(",", ":")).encode() + b"\n", "application/json"


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer of unknown length. An empty piece (or None) asks whether the client is still there."""

    pieces: Iterator[bytes | None]
    content_type: str
    code: int = 200
