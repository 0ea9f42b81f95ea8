"""Platform `slurm` of adapters whose trials run in a pool of workers. Imports no submitit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.capabilities import Capabilities
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import sampler_refusal
from tuneoff_adapters.remote_pool import RemotePool
from tuneoff_adapters.slurm import LOCAL_OPTIONS, SLURM
from tuneoff_adapters.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.run.trial.pool import Pool


def on_slurm(local: Capabilities, **changes: Any) -> Capabilities:
    """Return the capabilities of an adapter whose workers may be jobs of SLURM too, where SLURM limits their memory."""
    platforms = (*local.platforms, SLURM)
    capabilities = replace(local, platforms=platforms, memory_limiter="SLURM, and a watchdog on each node", **changes)
    return replace(local, platforms=platforms, elsewhere={**local.elsewhere, SLURM: capabilities})


class OnSlurm(RemotePool):
    """What an adapter with a pool does on SLURM: it has a job for each worker, and cancels what is left of them."""

    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    logs: ClassVar[tuple[str, ...]] = (f"{SLURM}/*.out", "pods/*.log")  # its adapters have pods, too
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

    def make_pool(self, target: str, arguments: tuple[Any, ...], preload: Sequence[str]) -> Pool:
        """Return the workers, for each of which `start` submits a job."""
        if self.context.spec.platform != SLURM:
            return super().make_pool(target, arguments, preload)
        from tuneoff_adapters.slurm.pool import SlurmPool

        context, outside = self.context, self.context.outside
        others = f"; {outside.read_text().strip()}" if outside.exists() else ""
        outside.write_text(f"SLURM's jobs of this name: scancel --name={self._job_name}{others}\n")
        package = self.capabilities.package or "submitit"
        return SlurmPool(context, self._job_name, (target, arguments, tuple(preload)), package)

    def undeploy(self) -> None:
        try:
            super().undeploy()
        finally:
            if self.context.spec.platform == SLURM and self.context.outside.exists():
                from tuneoff_adapters.slurm.jobs import end_all

                living = end_all(self._job_name, REMOVAL_SHARE * self.undeploy_seconds)
                self.forget()
                if living:
                    raise StepError(
                        f"no job of SLURM may be left, but there is {', '.join(living)}; run: scancel --name={self._job_name}"
                    )
                self.context.outside.unlink()
