"""Platform `slurm`: a job for each worker. Imports no submitit."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.base.commands import install_command
from tuneoff.base.packages import missing_modules
from tuneoff.base.targets import unknown_option
from tuneoff.errors import ExperimentError, InfrastructureError, StepError
from tuneoff_platforms.remote.options import budget_refusal
from tuneoff_platforms.remote.platform import Launch, LaunchState, RemotePlatform
from tuneoff_platforms.slurm import jobs
from tuneoff_platforms.slurm.options import LOCAL_OPTIONS, OPTIONS, sbatch_flags, slurm_options
from tuneoff_platforms.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.platform import Pool, PoolWork
    from tuneoff.record.run_context import RunContext
    from tuneoff_platforms.remote.job import Job

SIGNAL_SECONDS = 30  # before the end of a job's time: submitit puts it back into the queue


class SlurmPlatform(RemotePlatform):
    """Jobs of SLURM, which limits their memory."""

    options: ClassVar[frozenset[str]] = OPTIONS
    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    memory_limiter: ClassVar[str] = "SLURM"
    changes: ClassVar[Mapping[str, Any]] = {"memory_limiter": "SLURM, and a watchdog on each node"}

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self._options = slurm_options(context.spec)
        self.lost_seconds, self.pending_seconds = self._options.lost_seconds, self._options.pending_seconds
        self.address, self.listen = self._options.submit_host, ""

    @classmethod
    def missing(cls) -> str | None:
        if missing_modules(("submitit",)):
            return f"platform 'slurm' needs submitit; run: {install_command('tuneoff[slurm]')}"
        if absent := [name for name in ("sbatch", "srun", "scontrol") if shutil.which(name) is None]:
            return f"platform 'slurm' needs SLURM's commands, but {absent[0]} is not here; run tuneoff where you submit jobs"
        return None

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if problem := unknown_option(f"platform {spec.platform!r}", spec.options, sorted(OPTIONS)):
            raise ExperimentError(problem)
        slurm_options(spec)
        if spec.experiment.workers.cpu_limit != "none":
            return "jobs have their processors as SLURM is configured, tuneoff limits none; remove workers.cpu_limit"
        if spec.experiment.workers.devices:
            return "SLURM chooses a job's devices; remove workers.devices, and write sbatch: {gres: 'gpu:1'} for one per worker"
        return budget_refusal(spec)

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        requested = sbatch_flags(spec) | dict(sorted(slurm_options(spec).sbatch.items()))
        flags = (f"--{name}" if value is True else f"--{name}={value}" for name, value in requested.items())
        return f"submits {spec.experiment.workers.count} jobs to SLURM, a worker each: {' '.join(flags)}"

    @property
    def _job_name(self) -> str:
        return f"tuneoff-{self.context.execution_id}"

    def make_pool(self, work: PoolWork) -> Pool:
        with self.context.outside.open("a") as file:
            file.write(f"SLURM's jobs of this name: scancel --name={self._job_name}\n")
        return super().make_pool(work)

    def launch(self, job: Job) -> Launch:
        import submitit

        flags = {**sbatch_flags(self.context.spec), **self._options.sbatch}
        cpus = flags.pop("cpus-per-task")
        folder = self.context.work_dir / "workers"
        folder.mkdir(mode=0o700, exist_ok=True)
        executor = submitit.SlurmExecutor(folder, python=shlex.quote(self._options.host_python))
        executor.update_parameters(
            job_name=self._job_name,
            time=flags.pop("time"),
            nodes=1,
            ntasks_per_node=1,
            cpus_per_task=cpus,
            signal_delay_s=SIGNAL_SECONDS,
            stderr_to_stdout=True,
            setup=list(self._options.setup) or None,
            srun_args=[f"--cpus-per-task={cpus}"],  # from 22.05 on srun does not take it from the job
            additional_parameters={"requeue": True, **flags},
        )
        try:
            with _outside_of_jobs():
                submitted = executor.submit(_Requeued(job))
        except (RuntimeError, OSError) as error:  # of several classes
            raise InfrastructureError(f"SLURM must take a job, but sbatch says: {' '.join(str(error).split())}") from error
        return Launch(f"job {submitted.job_id}", Path(submitted.paths.stdout))

    def states(self, launches: Sequence[Launch]) -> Mapping[str, LaunchState]:
        by_id = jobs.states(self._job_name, map(_job_id, launches))
        return {launch.name: by_id[_job_id(launch)] for launch in launches}

    def settled(self, launch: Launch) -> LaunchState:
        return jobs.settled(_job_id(launch))

    def hasten(self, launch: Launch) -> None:
        with contextlib.suppress(InfrastructureError):  # SLURM has one that was put back into the queue wait for two minutes
            jobs.call("scontrol", "update", f"JobId={_job_id(launch)}", "StartTime=now")

    def cancel(self, launch: Launch) -> None:
        jobs.cancel(_job_id(launch))

    def remove(self, seconds: float) -> None:
        if living := jobs.end_all(self._job_name, REMOVAL_SHARE * seconds):
            raise StepError(
                f"no job of SLURM may be left, but there is {', '.join(living)}; run: scancel --name={self._job_name}"
            )


def _job_id(launch: Launch) -> str:
    return launch.name.removeprefix("job ")


@dataclass(frozen=True, slots=True)
class _Requeued:
    """What submitit calls in the job."""

    job: Job

    def __call__(self) -> None:
        os.environ.pop("TMPDIR", None)  # of the machine that submitted
        self.job()

    def checkpoint(self, *_: Any, **__: Any) -> Any:
        """Have submitit put the job back into the queue when its time is over."""
        from submitit.core.utils import DelayedSubmission

        return DelayedSubmission(self)


@contextlib.contextmanager
def _outside_of_jobs() -> Iterator[None]:
    """Submit as if this were no job itself, whatever its user has set for others: such variables overrule what is asked for."""
    hidden = {
        name: value for name, value in os.environ.items() if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF"
    }
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
