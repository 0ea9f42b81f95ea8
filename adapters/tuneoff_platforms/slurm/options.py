"""Options of platform `slurm`, and the flags of sbatch that follow from a run. Light: every plan imports it."""

from __future__ import annotations

import math
import re
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneoff.base.identity import is_finite
from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec
from tuneoff_platforms.remote.options import is_word, lost_seconds_of

LOCAL_OPTIONS = frozenset({"setup", "host_python", "submit_host", "lost_seconds", "pending_seconds"})  # the way, and the patience
OPTIONS = LOCAL_OPTIONS | {"sbatch"}
MINUTES = 60  # of a job, unless `sbatch` says `time`
PENDING_SECONDS = 3600.0
_FLAG = re.compile(r"[a-z]+(-[a-z]+)*")
_OURS = frozenset(  # of sbatch: they follow from the experiment, or tuneoff and submitit rely on them
    {"array", "chdir", "clusters", "cpus-per-task", "error", "export", "job-name", "mem", "mem-per-cpu", "nodes", "no-requeue"}
    | {"ntasks", "ntasks-per-node", "open-mode", "output", "parsable", "quiet", "requeue", "signal", "tasks-per-node"}
    | {"test-only", "wait", "wrap"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmOptions:
    """How jobs are submitted, and how long they are waited for."""

    sbatch: Mapping[str, str | int | bool] = field(default_factory=dict)  # flags of sbatch, e.g. partition; `time` in minutes
    setup: tuple[str, ...] = ()  # shell lines before the program, e.g. module load
    host_python: str = sys.executable
    submit_host: str = field(default_factory=socket.gethostname)  # name of this machine, as the nodes find it
    lost_seconds: float
    pending_seconds: float = PENDING_SECONDS  # how long a job may wait in the queue while the run has begun


def slurm_options(spec: RunSpec) -> SlurmOptions:
    """Return the checked options of a run; those of its framework are left alone.

    Raises:
        ExperimentError: an option has a wrong value.
    """
    options = {name: spec.options[name] for name in spec.options if name in OPTIONS}
    flags = options.get("sbatch", {})
    if not isinstance(flags, Mapping) or not all(map(_is_flag, flags.items())):
        raise ExperimentError(
            "option `sbatch` must have flags of sbatch by their long names, e.g. {partition: short, time: 30} (time in whole "
            f"minutes, true for a flag without a value), but got {flags!r}"
        )
    # sbatch takes a flag's beginning
    if taken := sorted(name for name in flags if any(reserved.startswith(name) for reserved in _OURS)):
        raise ExperimentError(f"option `sbatch` must leave {', '.join(taken)} to tuneoff: they follow from the experiment")
    setup = options.get("setup", [])
    if not (isinstance(setup, list) and all(isinstance(line, str) for line in setup)):
        raise ExperimentError(f"option `setup` must be a list of shell lines, e.g. [module load cuda], but got {setup!r}")
    for name in ("host_python", "submit_host"):
        if name in options and not is_word(options[name]):
            raise ExperimentError(f"option `{name}` must be a word, but got {options[name]!r}")
    pending = options.get("pending_seconds", PENDING_SECONDS)
    if not is_finite(pending) or pending <= 0:
        raise ExperimentError(f"option `pending_seconds` must be a number > 0, but got {pending!r}")
    fixed = {"sbatch": dict(flags), "setup": tuple(setup), "lost_seconds": lost_seconds_of(options)}
    return SlurmOptions(**{**options, **fixed})


def _is_flag(entry: tuple[Any, Any]) -> bool:
    name, value = entry
    if not isinstance(name, str) or _FLAG.fullmatch(name) is None:
        return False
    if name == "time":
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value is True or (isinstance(value, int | str) and not isinstance(value, bool) and "\n" not in str(value))


def sbatch_flags(spec: RunSpec) -> dict[str, str | int | bool]:
    """Return what every job asks for by the experiment, and its minutes unless option `sbatch` says them, as flags of sbatch."""
    workers = spec.experiment.workers
    requested: dict[str, str | int | bool] = {"cpus-per-task": math.ceil(workers.cpus)}
    if workers.memory_mb is not None:
        requested["mem"] = f"{math.ceil(workers.memory_mb * 1e6 / 1024)}K"
    return requested if "time" in slurm_options(spec).sbatch else {**requested, "time": MINUTES}
