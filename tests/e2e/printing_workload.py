"""A training that prints much, and says last what it has to say."""

from __future__ import annotations

from collections.abc import Mapping

from tuneoff_workloads.null import Null

FIRST, LAST = "the first words", "the last words"
LINES, LINE = 120_000, 99 * "x"  # 12 MB


class Printing(Null):
    """The null workload whose epochs print 12 MB."""

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        print(FIRST)
        for _ in range(LINES):
            print(LINE)
        print(LAST, flush=True)
        return {}
