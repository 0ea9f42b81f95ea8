"""Platform `slurm`: a job for each worker. Imports no submitit."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.base.commands import install_command
from tuneoff.base.packages import missing_modules
from tuneoff.errors import StepError
from tuneoff.platform import Platform, Pool, Work
from tuneoff_adapters.slurm import LOCAL_OPTIONS
from tuneoff_adapters.slurm.options import OPTIONS, placement, refuse_slurm
from tuneoff_adapters.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec


class SlurmPlatform(Platform):
    """Jobs of SLURM, which limits their memory."""

    options: ClassVar[frozenset[str]] = OPTIONS
    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    changes: ClassVar[Mapping[str, Any]] = {"memory_limiter": "SLURM, and a watchdog on each node"}

    @classmethod
    def missing(cls) -> str | None:
        if missing_modules(("submitit",)):
            return f"platform 'slurm' needs submitit; run: {install_command('tuneoff[slurm]')}"
        absent = [name for name in ("sbatch", "srun", "scontrol") if shutil.which(name) is None]
        return (
            f"platform 'slurm' needs SLURM's commands, but {absent[0]} is not here; run tuneoff where you submit jobs"
            if absent
            else None
        )

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return refuse_slurm(spec)

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        return placement(spec)

    @property
    def _job_name(self) -> str:
        return f"tuneoff-{self.context.execution_id}"

    def make_pool(self, work: Work) -> Pool:
        """Return the workers, for each of which `start` submits a job."""
        from tuneoff_adapters.slurm.pool import SlurmPool

        with self.context.outside.open("a") as file:
            file.write(f"SLURM's jobs of this name: scancel --name={self._job_name}\n")
        return SlurmPool(self.context, self._job_name, work)

    def remove(self, seconds: float) -> None:
        from tuneoff_adapters.slurm.jobs import end_all

        if living := end_all(self._job_name, REMOVAL_SHARE * seconds):
            raise StepError(
                f"no job of SLURM may be left, but there is {', '.join(living)}; run: scancel --name={self._job_name}"
            )
