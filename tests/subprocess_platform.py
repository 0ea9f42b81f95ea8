"""A platform of somebody else's, in one module: workers in plain processes of this machine, as far as tuneoff knows elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tuneoff.errors import ExperimentError
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.run_context import RunContext
from tuneoff_platforms.remote.job import Job
from tuneoff_platforms.remote.platform import Launch, LaunchState, RemotePlatform


class SubprocessPlatform(RemotePlatform):
    """Each job is a process of a group of its own."""

    options: ClassVar[frozenset[str]] = frozenset({"niceness"})
    local_options: ClassVar[frozenset[str]] = options
    changes: ClassVar[Mapping[str, Any]] = {}  # core limits memory and processors, as it does everywhere on this machine

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if others := sorted(set(spec.options) - cls.options):
            raise ExperimentError(f"platform {spec.platform!r} has no option {others[0]!r}; it has: niceness")
        return None

    def launch(self, job: Job) -> Launch:
        log = self.context.work_dir / "workers" / f"{job.number}.log"
        log.parent.mkdir(exist_ok=True)
        nice = ["nice", "-n", str(self.context.spec.options.get("niceness", 0))]
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*nice, *job.command(sys.executable)], stdin=subprocess.PIPE, stdout=output, stderr=output, process_group=0
            )
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(job.key)
        self._processes[f"process {process.pid}"] = process
        return Launch(f"process {process.pid}", log)

    def states(self, launches: Sequence[Launch]) -> Mapping[str, LaunchState]:
        codes = {launch.name: self._processes[launch.name].poll() for launch in launches}
        return {
            name: LaunchState("running", "running") if code is None else LaunchState("ended", f"exit code {code}")
            for name, code in codes.items()
        }

    def cancel(self, launch: Launch) -> None:
        os.killpg(self._processes[launch.name].pid, 9)
