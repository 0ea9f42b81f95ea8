"""Seeds as people write them in a file and after `--seeds`: `0 1 2`, `0-9`, `0,4-7`, `count:3` (the first three), also mixed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

MOST_SEEDS, MOST_SEED = 10_000, 2**63 - 1
FORMS = "0 1 2, 0-9, 0,4-7 or count:3"
_PART = re.compile(r"(?P<first>\d{1,19})(?:-(?P<last>\d{1,19}))?|count:(?P<count>\d{1,19})", re.ASCII)


def read_seeds(text: str) -> list[int]:
    """Return the seeds that a text lists, in its order.

    Raises:
        ValueError: it has another form, or more than 10 000 of them; one line.
    """
    seeds: list[int] = []
    for part in re.split(r" *, *| +", text.strip()):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"must be written like {FORMS}, but got {part!r}")
        first = int(match["first"] or 0)
        last = int(match["count"]) - 1 if match["count"] is not None else int(match["last"] or first)
        if last < first:
            rule = "count must be at least 1" if match["count"] is not None else "a range must ascend"
            raise ValueError(f"{rule}, but got {part!r}")
        if last > MOST_SEED:
            raise ValueError(f"must be at most {MOST_SEED}, but got {part!r}")
        if last - first >= MOST_SEEDS - len(seeds):
            raise ValueError(f"must be at most {MOST_SEEDS}, but got {part!r}")
        seeds.extend(range(first, last + 1))
    return seeds


def seeds_text(seeds: Sequence[int]) -> str:
    """Return the short form, which `read_seeds` reads back: `0-9`, `0,4-7`, `3,1`."""
    runs: list[list[int]] = [[seeds[0]]] if seeds else []
    for before, seed in pairwise(seeds):
        if seed == before + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
