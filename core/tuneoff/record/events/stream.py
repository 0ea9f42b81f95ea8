"""Records in a stream that a training prints to as well, as the log of a pod is.

A record has a line of its own, and begins with the control character that begins one in JSON text sequences (RFC 7464), and with
the execution that it belongs to: a reader finds it after any bytes, and takes nothing else for it. It imports nothing.
"""

from __future__ import annotations

_SEPARATOR = b"\x1e"  # which JSON escapes, so that no record contains it


def framed(line: bytes, execution_id: str) -> bytes:
    """Return a record's line (with its end) as it is written, in one call: whatever stands before it in the stream is ended."""
    return b"\n" + _mark(execution_id) + line


def record_in(line: bytes, execution_id: str) -> tuple[bytes, bytes | None]:
    """Return what stands before the record in a line of the stream (without its end), and the record; None: there is none."""
    before, mark, record = line.rpartition(_mark(execution_id))
    return (before, record) if mark else (line, None)


def _mark(execution_id: str) -> bytes:
    return _SEPARATOR + execution_id.encode() + b" "
