"""Platforms `kubernetes` and `kubernetes-jobs` of adapters whose trials run in a pool of workers. Imports no client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.base.commands import install_command
from tuneoff.base.packages import missing_modules
from tuneoff.capabilities import Capabilities
from tuneoff.experiment.strategies import sampler_refusal
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.kubernetes.adapter import ClusterAdapter
from tuneoff_adapters.kubernetes.options import JOBS, ClusterOptions, cluster_options, epochs_refusal, is_in_pods
from tuneoff_adapters.remote_pool import RemotePool
from tuneoff_adapters.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff.record.events.schema import Event
    from tuneoff.run.trial.pool import Pool
    from tuneoff_adapters.kubernetes.connection import Connection

CLIENT = "tuneoff[kubernetes]"


def on_clusters(local: Capabilities, platforms: Sequence[str], **changes: Any) -> Capabilities:
    """Return the capabilities of an adapter that has these platforms too, where pods are limited, and need a cluster."""
    on_cluster = replace(
        local,
        platforms=(*local.platforms, *platforms),
        head_node=True,  # the cluster's control plane
        memory_limiter="container",
        cpu_limiter="container",
        **changes,
    )
    elsewhere = {name: replace(on_cluster, long_lived_workers=name != JOBS) for name in platforms}
    return replace(local, platforms=on_cluster.platforms, elsewhere={**local.elsewhere, **elsewhere})


class OnClusters(ClusterAdapter, RemotePool):
    """What an adapter with a pool does on a cluster: it makes the pool there, and removes all that was made."""

    options_kind: ClassVar[type[ClusterOptions]] = ClusterOptions
    answer_kinds: ClassVar[Sequence[type]] = (TrialOutcome,)  # the dataclasses that its workers answer with

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if not is_in_pods(spec):
            return super().refuse(spec)
        cluster_options(spec, cls.options_kind)
        if missing_modules(("kubernetes",)):
            return f"platform {spec.platform!r} needs the Kubernetes client; run: {install_command(CLIENT)}"
        return epochs_refusal(spec) or sampler_refusal(spec, cls.capabilities.on(spec.platform))

    def observe(self, worker: int, event: Event) -> None:
        """Take in an event of a worker's pod; all of them come here, as soon as they are known."""

    def make_pool(self, target: str, arguments: tuple[Any, ...], preload: Sequence[str]) -> Pool:
        """Reach the API server, check that it can take a run, and make what the workers' pods need there."""
        if not is_in_pods(self.context.spec):
            return super().make_pool(target, arguments, preload)
        from tuneoff_adapters.kubernetes.checks import Needs, rights_of
        from tuneoff_adapters.kubernetes.layout import WORKER_KEY
        from tuneoff_adapters.kubernetes.manifest import config_map
        from tuneoff_adapters.kubernetes.messages import packed
        from tuneoff_adapters.kubernetes.pool import POOL_RIGHTS, PodPool

        context, options, plan = self.context, self._cluster_options, self._pod_plan
        needs = Needs(is_own_namespace=plan.is_own_namespace, rights=rights_of(options, POOL_RIGHTS))
        work = packed((target, arguments, tuple(preload), plan.checkpoint_bytes, plan.code))
        owner = self._deploy_config_map(plan, needs, False, lambda: config_map(plan, {WORKER_KEY: work}))
        assert self._connection is not None
        self._follower = pool = PodPool(
            context,
            plan,
            self._connection,
            owner,
            pending_seconds=options.pending_seconds,
            has_job_per_trial=context.spec.platform == JOBS,
            kinds=self.answer_kinds,
            observe=self.observe,
        )
        return pool

    def undeploy(self) -> None:
        """End the pool, delete what was made, and wait until it is gone."""
        super().undeploy()
        if self._follower is not None:
            self.context.note_versions({"image_digests": self._follower.image_digests()})
        if is_in_pods(self.context.spec) and self._outside.exists():
            self._remove()

    def _remove(self) -> None:
        from tuneoff_adapters.kubernetes.create import objects_of
        from tuneoff_adapters.kubernetes.parallel_calls import at_once, value
        from tuneoff_adapters.kubernetes.removal import remove

        connection = self._connection or self._connect()
        objects, seconds = objects_of(self._pod_plan, has_experiment=False), REMOVAL_SHARE * self.undeploy_seconds
        answers = at_once({"pods": lambda: remove(connection, objects, seconds), "besides": self.forget}, self.undeploy_seconds)
        for answer in answers.values():
            value(answer)
        connection.close()
        self._outside.unlink()

    @property
    def _cluster_options(self) -> Any:
        return cluster_options(self.context.spec, self.options_kind)

    @property
    def _pod_plan(self) -> Any:
        from tuneoff_adapters.kubernetes.plan import PodPlan, pod_plan

        context = self.context.trial_context
        plan = pod_plan(self.context, self._cluster_options, {})
        in_pods = replace(plan["trial_context"], slots=context.slots, trials=context.trials)
        return PodPlan(**{**plan, "trial_context": in_pods})

    def _connect(self) -> Connection:
        from tuneoff_adapters.kubernetes.connection import Connection

        return Connection.of(self._cluster_options)
