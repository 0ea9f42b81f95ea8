"""The one sampler of a host: while a run runs, it writes what its meter reads and what its processes use to `power.jsonl`."""

from __future__ import annotations

from pathlib import Path

from tuneoff.power.plan import NO_POWER, PowerPlan


class Sampler:
    """Samples one run from `start` to `stop`; nothing that happens to it ends or delays the run."""

    def __init__(self, folder: Path, execution_id: str, power: PowerPlan = NO_POWER) -> None:
        self._folder, self._execution_id, self._power = folder, execution_id, power

    def start(self) -> None:
        """Write the header and begin; called before the first process of the run is started."""

    def stop(self, collect_seconds: float = 30.0) -> None:
        """Take a last sample and end, within 1 s; a meter that is asked after the run gets up to `collect_seconds`."""
