"""The run's context: what core gives an adapter."""

from __future__ import annotations

import json
import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.files import append_line, read_json, replacing
from tuneoff.base.layout import FRAMEWORK, LEFTOVERS, OUTSIDE, SPEC, TRIAL_CONTEXT, VERSIONS
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events.writer import EventWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Experiment, folders, seeds and services of one execution of a run. Frozen; equal in a fresh process that undeploys."""

    spec: RunSpec
    run_dir: Path  # this execution's folder
    execution_id: str
    trial_context: TrialContext
    events: EventWriter

    @property
    def work_dir(self) -> Path:
        """The framework's own files: journals, storage, logs."""
        path = self.run_dir / FRAMEWORK
        path.mkdir(exist_ok=True)
        return path

    def submitted(
        self, trial_id: str, configuration: Mapping[str, object], framework_id: str | None = None, attempt: int = 1
    ) -> None:
        """Announce that the framework handed a configuration over for execution."""
        self.events.submitted(trial_id, configuration, framework_id, attempt)

    def flag(self, name: str, text: str) -> None:
        """Record something that a reader of the results must know."""
        log.warning("%s: %s", name, text)
        self.events.flag(name, text)

    def flag_unused_model(self, startup_trials: int) -> None:
        """Say so where so many trials are drawn at random, or given, that the budget ends before the sampler's model is used."""
        experiment = self.spec.experiment
        first = max(startup_trials, len(experiment.configurations))
        if first >= experiment.budget.trials:
            trials = f"{first} trials, but the budget is {experiment.budget.trials}"
            self.flag("sampler_without_model", f"model of sampler {experiment.sampler.name!r} is first used after {trials}")

    def note_versions(self, values: Mapping[str, object]) -> None:
        """Keep JSON values for `versions` of the record: of a server, a cluster, an image (its digest)."""
        note_versions(self.run_dir, values)

    def trial_command(self, trial_id: str, configuration_file: Path, attempt: int = 1) -> list[str]:
        """Return the command that runs one trial in a new process (script-driven frameworks)."""
        return [
            sys.executable,
            "-m",
            "tuneoff.run.trial",
            str(self.trial_context.path),
            trial_id,
            str(configuration_file),
            str(attempt),
        ]

    def remember(self, kind: str, value: str) -> None:
        """Write down what must be removed should this process die, before it is made: kind `folder` or `cgroup`, its path."""
        remember(self.run_dir, kind, value)

    @property
    def outside(self) -> Path:
        """A file for what is made outside this machine, in a cluster: an adapter writes it before (one line for the user: what it
        is, and how to remove it), and removes it once that is gone.

        While it is there, `undeploy` is called again, in a fresh process: when the command was killed, and by the next command on
        the results folder.
        """
        return self.run_dir / OUTSIDE

    @property
    def temporary_dir(self) -> Path:
        """This run's own temporary folder, with a short path (sockets: 107 bytes); TMPDIR of all its processes.

        The supervisor remembers it before it makes it and removes it after the run.
        """
        return Path(tempfile.gettempdir())


def read_context(run_dir: Path, supplied: Mapping[str, Any] | None = None, events_in: Path | None = None) -> RunContext:
    """Return the context of an execution for its coordinator, by its folder's files.

    `supplied`: what its supervisor says in place of the files. `events_in`: where its events go, if not into its folder.
    """
    stored = supplied if supplied is not None else json.loads((run_dir / SPEC).read_text())
    trials = stored.get("trial_context")
    return RunContext(
        spec=run_spec_from_json(stored["run"]),
        run_dir=run_dir,
        execution_id=stored["execution_id"],
        trial_context=TrialContext.read(run_dir / TRIAL_CONTEXT) if trials is None else TrialContext.from_json(trials),
        events=EventWriter(events_in or run_dir, stored["execution_id"], "coordinator"),
    )


def remember(run_dir: Path, kind: str, value: str) -> None:
    """Append one line to the run's list of possible leftovers (kinds: `folder`, `cgroup`)."""
    line = json.dumps({"kind": kind, "value": value}) + "\n"
    descriptor = os.open(run_dir / LEFTOVERS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        append_line(descriptor, line.encode())
    finally:
        os.close(descriptor)


def note_versions(run_dir: Path, values: Mapping[str, Any]) -> None:
    """Add to what is noted, in one step: a kill leaves the file as it was or as it is to be."""
    text = json.dumps({**noted_versions(run_dir), **values}, indent=1) + "\n"
    with replacing(run_dir / VERSIONS) as file:
        file.write(text.encode())


def noted_versions(run_dir: Path) -> dict[str, Any]:
    """Return what was noted; nothing where no adapter noted anything, or somebody else wrote the file."""
    try:
        noted = read_json(run_dir / VERSIONS)
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}
