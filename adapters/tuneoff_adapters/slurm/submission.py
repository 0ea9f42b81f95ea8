"""Submitting a worker's job by submitit."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator
from typing import Any

from tuneoff.errors import InfrastructureError
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.slurm import SLURM
from tuneoff_adapters.slurm.job import Job
from tuneoff_adapters.slurm.options import asked_for, slurm_options

SIGNAL_SECONDS = 30  # before the end of a job's time: submitit puts it back into the queue


def submit(context: RunContext, name: str, job: Job) -> Any:
    """Return submitit's job, which waits in SLURM's queue.

    Raises:
        InfrastructureError: SLURM does not take it.
    """
    import submitit

    options = slurm_options(context.spec)
    flags = {**asked_for(context.spec), **options.sbatch}
    cpus = flags.pop("cpus-per-task")
    folder = context.work_dir / SLURM
    folder.mkdir(mode=0o700, exist_ok=True)
    executor = submitit.SlurmExecutor(folder, python=shlex.quote(options.host_python))
    executor.update_parameters(
        job_name=name,
        time=flags.pop("time"),
        nodes=1,
        ntasks_per_node=1,
        cpus_per_task=cpus,
        signal_delay_s=SIGNAL_SECONDS,
        stderr_to_stdout=True,
        setup=list(options.setup) or None,
        srun_args=[f"--cpus-per-task={cpus}"],  # from 22.05 on srun does not take it from the job
        additional_parameters={"requeue": True, **flags},
    )
    try:
        with _outside_of_jobs():
            return executor.submit(job)
    except (RuntimeError, OSError) as error:  # of several classes
        raise InfrastructureError(f"SLURM must take a job, but sbatch says: {' '.join(str(error).split())}") from error


@contextlib.contextmanager
def _outside_of_jobs() -> Iterator[None]:
    """Submit as if this were no job itself, whatever its user has set for others: such variables overrule what is asked for."""
    ours = {name: value for name, value in os.environ.items() if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF"}
    for name in ours:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(ours)
