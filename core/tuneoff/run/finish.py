"""From the last event of an execution to its record: its end is stated, its raw files are sealed, the record is derived.

A command that was killed left executions without an end: the next one on the folder states it.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.base.capabilities import Capabilities
from tuneoff.base.files import pinned
from tuneoff.base.layout import CHECKPOINTS, END, LOG, RUNS, SLOTS, SPEC
from tuneoff.base.process_limits import thread_environment
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import RunSpec
from tuneoff.measure.derived import derive_folder
from tuneoff.record.end import ExecutionEnd, key_of, read_spec, seal, write_end
from tuneoff.record.endings import Ruling
from tuneoff.record.environment import capture
from tuneoff.record.run_record import RunRecord
from tuneoff.record.store import write_run
from tuneoff.registry import adapter_class
from tuneoff.run.environments import built_for
from tuneoff.run.supervisor.execution import Execution, is_named_for, write_spec
from tuneoff.run.supervisor.logs import shorten

log = logging.getLogger(__name__)


def finish(
    folder: Path, spec: RunSpec, ruling: Ruling | None, adapter: type[Adapter], environment: Mapping[str, Any] | None = None
) -> RunRecord:
    """Write `end.json` and `run.json` of an execution and return the record; keeps only the best checkpoint.

    Without a `ruling` the status follows from the events.

    Raises:
        ResultsError: an event file cannot be read, or `end.json` or the record cannot be written.
    """
    capabilities = adapter.capabilities_on(spec.platform)
    packages = (capabilities.package,) if capabilities.package else ()
    installed = capture(packages) if spec.environment is None else _installed(spec, packages)
    end = ExecutionEnd(
        ruling=ruling,
        versions={
            "framework": capabilities.framework,
            "framework_version": installed["versions"].get(capabilities.package),
            **adapter.strategies(spec),
        },
        environment={
            **installed,
            "threads": thread_environment(spec.experiment.workers.threads),  # as the run's processes had it
            "adapter": {
                "changed_defaults": list(adapter.changed_defaults(spec)),
                "long_lived_workers": capabilities.long_lived_workers,
                "reports": capabilities.reports_with(spec.experiment.pruner.name, spec.reports),
            },
            **_environment(environment or {}, spec, capabilities),
        },
        sealed=seal(folder),
    )
    record = derive_folder(folder, spec, end).record
    try:
        kept = {f"{record.best.trial}.safetensors"} if record.best is not None else set()
        with contextlib.suppress(FileNotFoundError), pinned(folder / CHECKPOINTS) as checkpoints:
            for path in checkpoints.iterdir():
                if path.name not in kept:
                    path.unlink()
        with contextlib.suppress(OSError), pinned(folder / SLOTS) as slots:
            for path in slots.iterdir():
                path.unlink()
            (folder / SLOTS).rmdir()
    except OSError as error:
        raise ResultsError(f"{folder} cannot be tidied: {error.strerror}; see {CHECKPOINTS}/ in it") from error
    write_run(folder, record, key_of(write_end(folder, end)))
    return record


def _installed(spec: RunSpec, packages: Sequence[str]) -> dict[str, Any]:
    """Return the machine, and what is installed in the environment that a run has of its own, if that is still there."""
    built = built_for(spec)
    if built is None:
        return {**capture(packages, {}), "python": None}
    about = {"digest": built.recipe.digest, "maker": built.maker, "dropped": list(built.dropped)}
    return {**capture(packages, built.packages), "python": built.recipe.python_version, "made": about}


def _environment(environment: Mapping[str, Any], spec: RunSpec, capabilities: Capabilities) -> Mapping[str, Any]:
    """Return what was in force, with the adapter's own limiters of memory and CPU where it has them."""
    limiters: dict[str, str] = {}
    if capabilities.memory_limiter and spec.experiment.workers.memory_mb is not None:
        limiters["memory"] = capabilities.memory_limiter
    if capabilities.cpu_limiter:
        limiters["cpus"] = capabilities.cpu_limiter
    return {**environment, "limits": {**environment.get("limits", {}), **limiters}} if limiters else environment


def recover(results: Path, plan: Plan, ruling: Ruling) -> None:
    """Write end and record of the plan's executions that have none: their status is the ruling's."""
    planned = {run.run_id: run.spec for run in plan.runs}
    for folder in sorted(results.glob(f"{RUNS}/*/*/")):
        if (folder / END).exists():
            continue
        try:
            spec = planned.get(folder.parent.name)
            if spec is None or not is_named_for(spec, folder):
                raise ResultsError("it is not an execution of a run that is planned here; remove the folder")
            if os.path.lexists(folder / SPEC):  # else the disk was full, or the command was killed, before anything was begun
                # of the folder's word only the timeouts: they are no part of the id, and may have changed in the plan since
                spec = replace(spec, experiment=replace(spec.experiment, timeouts=read_spec(folder).experiment.timeouts))
            write_spec(Execution(spec=spec, execution_id=folder.name, folder=folder))
            shorten(folder / LOG)
            finish(folder, spec, ruling, adapter_class(spec.adapter))
        except (OSError, ValueError, TuneoffError) as error:
            # made by a plugin that is gone, or by nobody of ours: the folder stays as it is
            log.warning("%s has no record and none can be derived: %s", folder, error)
