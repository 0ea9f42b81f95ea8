"""What a trial's process must know; read from one JSON file, with neither YAML nor entry points."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.identity import derive_seed
from tuneoff.base.layout import TRIAL_CONTEXT
from tuneoff.base.process_limits import SlotLimits
from tuneoff.workload import Mode, TrialSeeds, Workload, new_workload

if TYPE_CHECKING:
    from tuneoff.base.capabilities import Reports


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialContext:
    """Everything that `run_trial` needs, the same for all trials of a run."""

    run_dir: str  # absolute: a training may change the current folder
    execution_id: str
    workload: str  # "module:Class"
    workload_options: Mapping[str, Any] = field(default_factory=dict)
    metric: str
    mode: Mode
    epochs: int
    reports: Reports = "every_epoch"  # of which epochs `run_trial` tells the framework
    trials: int  # budget tickets
    epochs_total: int | None = None
    wall_clock_seconds: float | None = None
    slots: int = 1
    threads: int = 1
    goal: float | None = None  # at which core ends the run; None: it has none, or its framework does
    retries: int = 0  # that a trial may have: without any, no checkpoint need be enough to train on
    seed: int = 0
    memory_bytes: int | None = None
    limits: tuple[SlotLimits, ...] = ()  # one per slot; empty: somebody else limits trials, or nobody
    events_to_stdout: bool = False  # a pod writes its events to standard output
    folder: str | None = None  # the current one of the command, which each trial finds; None: the process's own
    umask: int | None = None  # likewise

    @property
    def path(self) -> Path:
        return Path(self.run_dir) / TRIAL_CONTEXT

    @property
    def memory_cgroups(self) -> tuple[str, ...]:
        """The memory control group of each slot; empty: the watchdog alone limits memory."""
        return tuple(limits.memory_cgroup for limits in self.limits if limits.memory_cgroup is not None)

    @property
    def devices(self) -> tuple[int, ...]:
        """The accelerator of each slot; empty: none has one of its own."""
        return tuple(limits.device for limits in self.limits if limits.device is not None)

    def write(self) -> Path:
        """Write the file that `read` reads in one step and return its path."""
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.to_json()))
        os.replace(temporary, self.path)
        return self.path

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, which have no key for a goal where there is none."""
        return {name: value for name, value in asdict(self).items() if name != "goal" or value is not None}

    @classmethod
    def read(cls, path: Path | str) -> TrialContext:
        return cls.from_json(json.loads(Path(path).read_text()))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TrialContext:
        """Return the context that `to_json` gave."""
        slots = [{**limits, "processors": tuple(limits["processors"])} for limits in data["limits"]]
        data["limits"] = tuple(SlotLimits(**limits) for limits in slots)
        return cls(**data)

    def seeds(self, digest: str) -> TrialSeeds:
        """Return the seeds of a configuration by its digest: equal in every framework, order and attempt."""
        return TrialSeeds(split=derive_seed("split", self.seed), trial=derive_seed("trial", self.seed, digest))

    def make_workload(self) -> Workload:
        """Return a new instance of the workload, with options of its own.

        Raises:
            PluginError: its class cannot be imported.
        """
        workload = new_workload(self.workload, self.workload_options)
        workload.objective, workload.planned_epochs = self.metric, self.epochs
        return workload
