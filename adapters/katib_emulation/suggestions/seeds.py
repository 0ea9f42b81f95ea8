"""Independent streams of random numbers from one seed."""

from __future__ import annotations

import hashlib
import random


def stream(*parts: object) -> random.Random:
    """Return a generator that depends on all parts, and on nothing else."""
    return random.Random(derived(*parts))


def derived(*parts: object, bits: int = 64) -> int:
    """Return a number of `bits` bits that depends on all parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest, "big") >> (256 - bits)
