"""Narrow dimensions that are drawn beside the file's own: an off-by-one that no wide dimension shows is a tenth of these."""

from __future__ import annotations

from tuneoff.base.space import Categorical, Dimension, Float, IntegerLog, SearchSpace, stepped

PREFIX = "probe_"

PROBES: dict[str, Dimension] = {
    "two": stepped(0, 1, 1, integer=True),
    "ten": stepped(0, 9, 1, integer=True),
    "tens": stepped(-20, 20, 10, integer=True),
    "quarters": stepped(0.0, 1.0, 0.25, integer=False),
    "log_ten": IntegerLog(low=1, high=10),
    "switch": Categorical(choices=(False, True)),
    "choice": Categorical(choices=("a", "b", None, 0.5, [64, 32], {"deep": 1}, "g")),
    "rank": Categorical(choices=("xs", "s", "m", "l"), ordered=True),
    "float": Float(low=-1.0, high=3.0),
    "rate": Float(low=1e-5, high=1e-1, log=True),
}


def with_probes(space: SearchSpace) -> SearchSpace:
    """Return the space with the probes behind its own dimensions, under names that it does not use."""
    prefix = PREFIX
    while any(f"{prefix}{name}" in space.dimensions for name in PROBES):
        prefix = f"_{prefix}"
    return SearchSpace({**space.dimensions, **{f"{prefix}{name}": dimension for name, dimension in PROBES.items()}})
