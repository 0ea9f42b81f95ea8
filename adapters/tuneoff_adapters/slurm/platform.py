"""Platform `slurm` of adapters whose trials run in a pool of workers. Imports no submitit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.capabilities import Capabilities
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import sampler_refusal
from tuneoff_adapters.kubernetes.platform import REMOVAL_SHARE, SETUP_SHARE, OnClusters
from tuneoff_adapters.slurm import LOCAL_OPTIONS, SLURM

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.run.trial.pool import Pool


def on_slurm(local: Capabilities, **changes: Any) -> Capabilities:
    """Return the capabilities of an adapter whose workers may be jobs of SLURM too, where SLURM limits their memory."""
    platforms = (*local.platforms, SLURM)
    there = replace(local, platforms=platforms, memory_limiter="SLURM, and a watchdog on each node", **changes)
    return replace(local, platforms=platforms, elsewhere={**local.elsewhere, SLURM: there})


class OnSlurm(OnClusters):
    """What an adapter with a pool does on SLURM: it has a job for each worker, and cancels what is left of them."""

    local_options: ClassVar[frozenset[str]] = OnClusters.local_options | LOCAL_OPTIONS
    slurm_options: ClassVar[frozenset[str]] = frozenset()  # that its framework has there besides

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if spec.platform != SLURM:
            return super().refuse(spec)
        from tuneoff_adapters.slurm.options import refuse_slurm

        return refuse_slurm(spec, cls.slurm_options) or sampler_refusal(spec, cls.capabilities.on(SLURM))

    @classmethod
    def placement(cls, spec: RunSpec) -> str | None:
        if spec.platform != SLURM:
            return super().placement(spec)
        from tuneoff_adapters.slurm.options import placement

        return placement(spec)

    @property
    def _job_name(self) -> str:
        return f"tuneoff-{self.context.execution_id}"

    def slurm_pool(self, target: str, arguments: tuple[Any, ...], preload: Sequence[str]) -> Pool:
        """Submit a job for each worker, and return them as a started pool."""
        from tuneoff_adapters.slurm.pool import SlurmPool

        context, outside = self.context, self.context.outside
        others = f"; {outside.read_text().strip()}" if outside.exists() else ""
        outside.write_text(f"SLURM's jobs of this name: scancel --name={self._job_name}{others}\n")
        package = self.capabilities.package or "submitit"
        pool = SlurmPool(context, self._job_name, (target, arguments, tuple(preload)), package)
        try:
            pool.start(SETUP_SHARE * context.spec.experiment.timeouts.deploy_seconds)
        except BaseException:  # Ctrl-C too: it is no pool yet that un-deploy would close
            pool.close()
            raise
        return pool

    def undeploy(self) -> None:
        try:
            super().undeploy()
        finally:
            if self.context.spec.platform == SLURM and self.context.outside.exists():
                self._end_jobs()

    def _end_jobs(self) -> None:
        from tuneoff_adapters.slurm.jobs import end_all

        left = end_all(self._job_name, REMOVAL_SHARE * self.undeploy_seconds)
        self.forget()
        if left:
            raise StepError(f"no job of SLURM may be left, but there is {', '.join(left)}; run: scancel --name={self._job_name}")
        self.context.outside.unlink()
