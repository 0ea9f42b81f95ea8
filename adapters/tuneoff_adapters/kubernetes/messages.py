"""What a worker in a pod and its coordinator say to each other, a line each.

The coordinator's are pickles, as on a pipe: a pod trusts who made it. A worker's are JSON among the records of its log:
{"answer":["TrialOutcome",{"state":"completed",...}]}.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import pickle
from collections.abc import Iterable
from typing import Any

PREFIX = b'{"answer":'  # how each line of a worker's begins


def packed(content: Any) -> str:
    """Return what the coordinator says as one word."""
    return base64.b64encode(pickle.dumps(content)).decode()


def unpacked(word: str | bytes) -> Any:
    return pickle.loads(base64.b64decode(word))


def answer_line(content: Any) -> bytes:
    """Return the line for what a worker says: a dataclass of plain values, a list or a text."""
    if dataclasses.is_dataclass(content) and not isinstance(content, type):
        content = [type(content).__name__, dataclasses.asdict(content)]
    else:
        content = ["", content]
    return json.dumps({"answer": content}, separators=(",", ":")).encode() + b"\n"


def answer_of(line: bytes, kinds: Iterable[type]) -> Any:
    """Return what a line says; None where it is not an answer. `kinds`: the dataclasses that may come."""
    if not line.startswith(PREFIX):
        return None
    try:
        name, content = json.loads(line)["answer"]
        return {kind.__name__: kind for kind in kinds}[name](**content) if name else content
    except (ValueError, LookupError, TypeError):  # not whole, or of another tuneoff
        return None
