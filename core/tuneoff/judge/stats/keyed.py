"""Random numbers keyed by text: the same key gives the same numbers, whatever else is computed beside it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def generator(*key: str) -> np.random.Generator:
    """Return a generator of its own for this key (pair, question, scope, ...); no global state is read or changed."""
    import numpy as np

    # The length before each part tells ("ab", "c") from ("a", "bc").
    text = "".join(f"{len(part)}:{part}" for part in key)
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest(), "big"))
