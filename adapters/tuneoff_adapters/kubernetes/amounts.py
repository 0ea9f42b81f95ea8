"""What a worker asks for in Kubernetes' units, the same for the pods' requests and for the size of the emulated node."""

from __future__ import annotations

import math
from decimal import Decimal

from tuneoff.experiment.spec import Workers

MEGABYTE = 10**6


def cpu_thousandths(workers: Workers) -> int:
    """Return the processors of one worker in thousandths, rounded up: Kubernetes knows no finer unit."""
    return math.ceil(Decimal(repr(workers.cpus)) * 1000)


def memory_bytes(workers: Workers) -> int | None:
    """Return the memory of one worker in bytes, rounded up; None: no limit."""
    return None if workers.memory_mb is None else math.ceil(Decimal(repr(workers.memory_mb)) * MEGABYTE)
