"""Canonical JSON, content hashes and seeds derived from them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from tuneoff.errors import ExperimentError

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_NUMBERS = (int, float)  # half the time of `int | float`, which is built anew in every call


def canonical_json(value: Any) -> str:
    """Return the one JSON text of `value`: sorted keys, no blanks, shortest floats; 1.0 and 1 stay different.

    Raises:
        ExperimentError: a float is not finite, or a value has no JSON form.
    """
    try:
        text = _encode(value)
        text.encode()  # a lone surrogate has no bytes to hash
    except (TypeError, ValueError) as error:
        raise ExperimentError(f"only finite JSON values can be identified, but got {value!r}: {error}") from error
    return text


def digest(value: Any, length: int = 16) -> str:
    """Return the first `length` hex digits of the SHA-256 of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def configuration_digest(configuration: Mapping[str, Any]) -> str:
    """Return the identity of a configuration: equal in every framework, order and attempt."""
    return digest(dict(configuration))


def own_copy(value: Any) -> Any:
    """Return a JSON value that shares nothing with `value`: a training may change what it is handed."""
    return json.loads(json.dumps(value))


def trial_name(number: int) -> str:
    """Return the id of a trial, numbered from 0 in the order of submission."""
    return f"t{number:05d}"


def derive_seed(*parts: Any) -> int:
    """Return a seed in [0, 2**31) hashed from `parts`; seeds of different axes are unrelated."""
    return int(hashlib.sha256(canonical_json(list(parts)).encode()).hexdigest()[:16], 16) % 2**31


def is_finite(value: Any) -> bool:
    """Tell whether `value` is a number in the range of a finite float (a bool is none)."""
    return isinstance(value, _NUMBERS) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
