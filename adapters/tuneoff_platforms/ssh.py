"""Platform `ssh`: workers on hosts of the user's, each started by the command that reaches its host."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tuneoff.base.processes import last_words
from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError, InfrastructureError, StepError
from tuneoff_platforms.remote.options import (
    LOCAL_OPTIONS,
    LOST,
    host_options,
    hosts_refusal,
    is_here,
    is_word,
    own_address,
    slots_of,
)
from tuneoff_platforms.remote.platform import Launch, LaunchState, RemotePlatform
from tuneoff_platforms.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.platform import Pool, PoolWork
    from tuneoff.record.run_context import RunContext
    from tuneoff_platforms.remote.job import Job


class SshPlatform(RemotePlatform):
    """Hosts that a command reaches, `ssh {host}` or another one. They share the slots evenly."""

    options: ClassVar[frozenset[str]] = LOCAL_OPTIONS | {"submit_host"}
    local_options: ClassVar[frozenset[str]] = options

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self._options = host_options(context.spec.options)
        self.lost_seconds = self._options.lost_seconds
        shares = slots_of(self._options.hosts, context.spec.experiment.workers.count)
        self._hosts = [host for host, count in shares.items() for _ in range(count)]  # of each worker
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._tries: dict[int, int] = {}  # by worker

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if problem := unknown_option(f"platform {spec.platform!r}", spec.options, sorted(cls.options)):
            raise ExperimentError(problem)
        hosts = host_options(spec.options).hosts
        if not hosts:
            raise ExperimentError(f"platform {spec.platform!r} needs option `hosts`, where workers are, e.g. [node1, node2]")
        if not is_word(spec.options.get("submit_host", "localhost")):
            raise ExperimentError(f"option `submit_host` must be a word, but got {spec.options['submit_host']!r}")
        return hosts_refusal(spec, hosts)

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        options = host_options(spec.options)
        shares = ", ".join(f"{host} {count}" for host, count in slots_of(options.hosts, spec.experiment.workers.count).items())
        return f"starts workers on {shares}; reached by `{options.host_command}`"

    def make_pool(self, work: PoolWork) -> Pool:
        self.address = self.listen = own_address(self._options.hosts)
        if (name := self.context.spec.options.get("submit_host")) is not None:
            self.address, self.listen = name, ""
        with self.context.outside.open("a") as file:
            file.write(
                f"tuneoff's processes on {', '.join(self._options.hosts)}; they end {self.lost_seconds:g} s after they last "
                f"heard from tuneoff; else end those with TUNEOFF_RUN_ID={self.context.execution_id} in their environment\n"
            )
        return super().make_pool(work)

    def launch(self, job: Job) -> Launch:
        tries = self._tries[job.index] = self._tries.get(job.index, -1) + 1
        names = self._options.hosts
        host = names[(names.index(self._hosts[job.index]) + tries) % len(names)]  # another one than that on which it was lost
        log = self._log(f"{host}-{job.number}")
        process = self._started(host, job.command(self._python(host))[1:], log)
        assert process.stdin is not None
        with contextlib.suppress(OSError), process.stdin as pipe:  # what has ended already says why in its log
            pipe.write(job.key)
        launch = Launch(f"{host} #{job.number}", log)
        self._processes[launch.name] = process
        return launch

    def states(self, launches: Sequence[Launch]) -> Mapping[str, LaunchState]:
        return {launch.name: self._state(launch) for launch in launches}

    def cancel(self, launch: Launch) -> None:
        """End the way to it: its agent is not let in."""
        self._processes[launch.name].kill()

    def remove(self, seconds: float) -> None:
        """Have each host end what is left there; one that does not answer ends it by itself."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        others = [host for host in self._options.hosts if not is_here(host)]  # here it is the supervisor's
        words = ["-m", "tuneoff_platforms.remote.cleaning", self.context.execution_id]
        logs = {host: self._log(f"cleaning-{host}") for host in others}
        cleanings = {host: self._started(host, words, log) for host, log in logs.items()}
        leftovers = []
        for host, cleaning in cleanings.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                cleaning.communicate(timeout=REMOVAL_SHARE * seconds)
            if cleaning.returncode != 0:  # None: it hangs
                cleaning.kill()
                cleaning.wait()
                self.context.flag(LOST, f"host {host} cannot be cleaned ({last_words(logs[host])}); its agents end what is left")
            elif words_left := logs[host].read_text().strip():
                leftovers.append(f"{words_left} on host {host}")
        if leftovers:
            raise StepError(f"nothing of the run may be left, but there is {', '.join(leftovers)}; end it by hand")

    def _state(self, launch: Launch) -> LaunchState:
        code = self._processes[launch.name].poll()
        return LaunchState("running", "running") if code is None else LaunchState("ended", f"exit code {code}")

    def _python(self, host: str) -> str:
        return sys.executable if is_here(host) else self._options.host_python

    def _log(self, name: str) -> Path:
        folder = self.context.work_dir / "workers"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.log"

    def _started(self, host: str, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        from tuneoff_platforms.remote.host import started

        template = None if is_here(host) else self._options.host_command
        try:
            with log.open("ab") as file:
                return started(host, template, [self._python(host), *words], stdout=file, stderr=file)
        except OSError as error:
            raise InfrastructureError(f"host {host} cannot be reached: {error}") from error
