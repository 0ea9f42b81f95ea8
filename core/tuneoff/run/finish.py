"""From an ended execution to its record: derived from its events, with metrics, sealed, stored.

A command that was killed left executions without a record: the next one on the folder derives them.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuneoff.adapter import Adapter
from tuneoff.base.files import pinned, read_json
from tuneoff.base.packages import installed_version
from tuneoff.base.process_limits import thread_environment
from tuneoff.base.tracebacks import LOG
from tuneoff.capabilities import Capabilities
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.measure.derived import derive_folder
from tuneoff.record.endings import Ruling
from tuneoff.record.environment import capture
from tuneoff.record.layout import SPEC
from tuneoff.record.run_context import noted_versions
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import power_of
from tuneoff.record.store import FILE_NAME, RUNS, write_run
from tuneoff.registry import adapter_class
from tuneoff.run.supervisor.execution import Execution, is_named_for, write_spec
from tuneoff.run.supervisor.logs import shorten
from tuneoff.run.trial.checkpoint import FOLDER as CHECKPOINTS

log = logging.getLogger(__name__)


def finish(
    folder: Path, spec: RunSpec, ruling: Ruling | None, adapter: type[Adapter], environment: Mapping[str, Any] | None = None
) -> RunRecord:
    """Write `run.json` of an execution and return the record; keeps only the best checkpoint.

    Without a `ruling` the status follows from the events.

    Raises:
        ResultsError: an event file cannot be read, or the record cannot be written.
    """
    capabilities = adapter.capabilities.on(spec.platform)
    packages = (capabilities.package,) if capabilities.package else ()
    record = derive_folder(
        folder,
        spec,
        emulated=spec.platform in capabilities.emulated_platforms,
        ruling=ruling,
        versions={
            "framework": capabilities.framework,
            "framework_version": installed_version(capabilities.package) if capabilities.package else None,
            **adapter.strategies(spec),
            **noted_versions(folder),
        },
        environment={
            **capture(packages),
            "threads": thread_environment(spec.experiment.workers.threads),  # as the run's processes had it
            "power": power_of(folder),
            "adapter": {
                "changed_defaults": list(adapter.changed_defaults(spec)),
                "long_lived_workers": capabilities.long_lived_workers,
                "reports": capabilities.reports_with(spec.experiment.pruner.name, spec.reports),
            },
            **_environment(environment or {}, spec, capabilities),
        },
    ).record
    try:
        _keep_best_checkpoint(folder, record)
    except OSError as error:
        raise ResultsError(f"{folder} cannot be tidied: {error.strerror}; see {CHECKPOINTS}/ in it") from error
    write_run(folder, record)
    return record


def _environment(environment: Mapping[str, Any], spec: RunSpec, capabilities: Capabilities) -> Mapping[str, Any]:
    """Return what was in force, with the adapter's own limiters of memory and CPU where it has them."""
    own: dict[str, str] = {}
    if capabilities.memory_limiter and spec.experiment.workers.memory_mb is not None:
        own["memory"] = capabilities.memory_limiter
    if capabilities.cpu_limiter:
        is_emulated = spec.platform in capabilities.emulated_platforms
        own["cpus"] = f"none ({spec.platform} {capabilities.cpu_limiter})" if is_emulated else capabilities.cpu_limiter
    return {**environment, "limits": {**environment.get("limits", {}), **own}} if own else environment


def _keep_best_checkpoint(folder: Path, record: RunRecord) -> None:
    kept = {f"{record.best.trial}.safetensors"} if record.best is not None else set()
    with contextlib.suppress(FileNotFoundError), pinned(folder / CHECKPOINTS) as checkpoints:
        for path in checkpoints.iterdir():
            if path.name not in kept:
                path.unlink()
    with contextlib.suppress(OSError), pinned(folder / "slots") as slots:
        for path in slots.iterdir():
            path.unlink()
        (folder / "slots").rmdir()


def recover(results: Path, plan: Plan, ruling: Ruling) -> None:
    """Write the record of the plan's executions that have none: their status is the ruling's."""
    planned = {run.run_id: run.spec for run in plan.runs}
    for folder in sorted(results.glob(f"{RUNS}/*/*/")):
        if (folder / FILE_NAME).exists():
            continue
        try:
            spec = planned.get(folder.parent.name)
            if spec is None or not is_named_for(spec, folder):
                raise ResultsError("it is no execution of a run that is planned here; remove the folder")
            if not os.path.lexists(folder / SPEC):  # the disk was full, or the command was killed, before anything was begun
                write_spec(Execution(spec=spec, execution_id=folder.name, folder=folder))
            else:
                # of the folder's word only the timeouts: they are no part of the id, and may have changed in the plan since
                timeouts = run_spec_from_json(read_json(folder / SPEC)["run"]).experiment.timeouts
                spec = replace(spec, experiment=replace(spec.experiment, timeouts=timeouts))
            shorten(folder / LOG)
            finish(folder, spec, ruling, adapter_class(spec.adapter))
        except (OSError, ValueError, KeyError, TypeError, TuneoffError) as error:
            # made by a plugin that is gone, or by nobody of ours: the folder stays as it is
            log.warning("%s has no record and none can be derived: %s", folder, error)
