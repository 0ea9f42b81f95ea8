"""A defect in what the framework learns of its trials."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tuneoff.adapter import Capabilities
from tuneoff_adapters.katib.adapter import KatibAdapter
from tuneoff_adapters.katib.options import EMULATED
from tuneoff_adapters.kubernetes import layout


class ReadsAnotherFile(KatibAdapter):
    """Katib's collector reads another file than the one that its trials write."""

    capabilities: ClassVar[Capabilities] = replace(KatibAdapter.capabilities, platforms=(EMULATED,))

    def setup(self) -> None:
        layout.METRICS_FILE = "/var/log/katib/other.log"  # of the Experiment; its pods are told of the file by a variable
        super().setup()
