"""A workload that leaves a daemon with each trial."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daemons import start_daemon
from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.sleep import Sleep


class Daemonic(Sleep):
    """The sleep workload, with an option `folder` for notes of its daemons' pids."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in options.items() if name != "folder"})
        self._folder = Path(options["folder"])

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        start_daemon(self._folder / uuid.uuid4().hex)
