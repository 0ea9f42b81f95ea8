"""A workload that tells which device its process saw when it was imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from tuneoff.workload import Mode
from tuneoff_workloads.sleep import Sleep

SEEN = os.environ.get("CUDA_VISIBLE_DEVICES", "")


class Seeing(Sleep):
    """`sleep` with the metric `device`: -1 where not exactly one was seen."""

    name: ClassVar[str] = "seeing"
    metrics: ClassVar[Mapping[str, Mode]] = {**Sleep.metrics, "device": "max"}

    def validate(self) -> Mapping[str, float]:
        return {**super().validate(), "device": float(SEEN) if SEEN.isdigit() else -1.0}
