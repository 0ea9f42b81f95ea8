"""The two sides of a pair: a run of tuneoff, and the bare script for the same framework; each in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import resource
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.child import run_module
from benchmarks.speed.settings import Settings
from tuneoff.base.commands import install_command
from tuneoff.experiment.spec import CpuLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """An adapter's name and the bare script that it is held against."""

    adapter: str
    package: str | None  # what must be importable; None: nothing
    module: str
    bare: str  # what the script is, in words
    first_guess: int  # null trials for the first try at filling the span
    flags: Sequence[str] = ()
    note: str = ""


FRAMEWORKS = (
    Framework(
        adapter="serial",
        package=None,
        module="serial_bare",
        bare="persistent worker processes with pipes, one result line per trial, no supervision",
        first_guess=1000,
        note="B has no framework: with null trials A / B compares tuneoff's whole work for a trial (six events, ticket, slot, "
        "seeds, digest) with one message through a pipe; A - B is what that work costs.",
    ),
    Framework(
        adapter="optuna",
        package="optuna",
        module="optuna_bare",
        bare="spawned processes over a journal file with a flock lock: ask, suggest, report, tell",
        first_guess=200,
    ),
    Framework(
        adapter="ray-tune",
        package="ray",
        module="ray_bare",
        bare="Tuner with reused actors, quiet settings, no files per trial",
        first_guess=60,
    ),
    Framework(
        adapter="syne-tune",
        package="syne_tune",
        module="syne_bare",
        bare="Tuner with LocalBackend polled every 0.05 s, trials that import its Reporter",
        first_guess=10,
    ),
)
SYNE_PRINTED = Framework(
    adapter="syne-tune",
    package="syne_tune",
    module="syne_bare",
    bare="the same, but its trials print the report themselves instead of importing the Reporter",
    first_guess=40,
    flags=("printed",),
)


KATIB = Framework(
    adapter="katib",
    package="kubeflow",
    module="katib_bare",
    bare="the same pods' commands, each by `sh -c` in a plain loop with 2 slots, no server and no supervision",
    first_guess=40,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What one side took, in seconds: the whole (process start to end; for tuneoff supervision and record) and the trial span.

    `cpu_seconds`: of all its processes that somebody waited for, imports included; for tuneoff so are supervision, events, pool
    and record.
    """

    whole_seconds: float
    span_seconds: float
    cpu_seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


def why_missing(framework: Framework) -> str | None:
    """Return why a framework cannot be measured here, or None."""
    if framework.package is not None and importlib.util.find_spec(framework.package) is None:
        return f"the package {framework.package} is not installed; run: {install_command('tuneoff[all]')}"
    return None


def run_bare(framework: Framework, trials: int, sleep_seconds: float, settings: Settings) -> Side:
    """Run the bare script once in a fresh folder.

    Raises:
        MeasurementError: it failed.
    """
    folder = Path(tempfile.mkdtemp(prefix="bare-", dir=settings.folder))
    try:
        arguments = [str(folder), str(trials), str(sleep_seconds), *framework.flags]
        before = _children_cpu_seconds()
        answer, wall_seconds = run_module(f"benchmarks.speed.bare.{framework.module}", arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Side(whole_seconds=wall_seconds, span_seconds=answer["span_seconds"], cpu_seconds=_children_cpu_seconds() - before)


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_tuneoff(
    adapter: str,
    workload: str,
    trials: int,
    settings: Settings,
    *,
    options: Mapping[str, Any] | None = None,
    own_space: bool = False,
    platform: str = "local",
    adapter_options: Mapping[str, Any] | None = None,
    cpu_limit: CpuLimit = "none",
) -> Side:
    """Run one supervised run in a fresh results folder.

    Raises:
        MeasurementError: it failed.
    """
    folder = Path(tempfile.mkdtemp(prefix="tuneoff-", dir=settings.folder))
    order = {
        "adapter": adapter,
        "workload": workload,
        "trials": trials,
        "options": dict(options or {}),
        "own_space": own_space,
        "platform": platform,
        "adapter_options": dict(adapter_options or {}),
        "cpu_limit": cpu_limit,
        "results": str(folder),
    }
    try:
        before = _children_cpu_seconds()
        answer, _ = run_module("benchmarks.speed.one_run", [json.dumps(order)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Side(
        whole_seconds=answer["supervise_seconds"] + answer["finish_seconds"],
        span_seconds=answer["span_seconds"],
        cpu_seconds=_children_cpu_seconds() - before,
        details=answer,
    )
