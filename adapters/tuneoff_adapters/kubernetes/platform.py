"""Platforms `kubernetes` (a Job for each worker) and `kubernetes-jobs` (one for each trial). Imports no client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tuneoff.base.commands import install_command
from tuneoff.base.packages import missing_modules
from tuneoff.platform import Platform, Pool, PoolWork
from tuneoff_adapters.kubernetes.options import LOCAL_OPTIONS, ClusterOptions, cluster_options, epochs_refusal
from tuneoff_platforms.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from tuneoff.experiment.spec import RunSpec
    from tuneoff_adapters.kubernetes.connection import Connection
    from tuneoff_adapters.kubernetes.plan import PodPlan


class KubernetesPlatform(Platform):
    """Pods, which are limited, need a cluster, and share nothing with the run."""

    options: ClassVar[frozenset[str]] = frozenset(entry.name for entry in fields(ClusterOptions))
    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    run_folder: ClassVar[Literal["here", "shared", "none"]] = "none"
    changes: ClassVar[Mapping[str, Any]] = {
        "head_node": True,  # the cluster's control plane
        "memory_limiter": "container",
        "cpu_limiter": "container",
    }
    doctor: ClassVar[str | None] = "tuneoff_adapters.kubernetes.doctor:checks"

    @classmethod
    def missing(cls) -> str | None:
        if missing_modules(("kubernetes",)):
            return f"pods need the Kubernetes client; run: {install_command('tuneoff[kubernetes]')}"
        return None

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        cluster_options(spec, ClusterOptions)
        return epochs_refusal(spec)

    def make_pool(self, work: PoolWork) -> Pool:
        """Reach the API server, check that it can take a run, and make what the workers' pods need there."""
        from tuneoff_adapters.kubernetes.checks import Needs, rights_of
        from tuneoff_adapters.kubernetes.deploy import deploy_config_map
        from tuneoff_adapters.kubernetes.layout import WORKER_KEY
        from tuneoff_adapters.kubernetes.manifest import config_map
        from tuneoff_adapters.kubernetes.messages import packed
        from tuneoff_adapters.kubernetes.pool import POOL_RIGHTS, PodPool

        options, plan = self._cluster_options, self._pod_plan
        needs = Needs(is_own_namespace=plan.is_own_namespace, rights=rights_of(options, POOL_RIGHTS))
        content = packed((work.target, work.arguments, work.preload, plan.checkpoint_bytes, plan.code))
        outside = self.context.outside
        connection, owner = deploy_config_map(
            self.context,
            self._connect,
            plan,
            needs,
            lambda: config_map(plan, {WORKER_KEY: content}),
            outside,
            has_experiment=False,
        )
        return PodPool(
            self.context,
            plan,
            connection,
            owner,
            options.pending_seconds,
            work,
        )

    def remove(self, seconds: float) -> None:
        """Delete what was made, and wait until it is gone."""
        from tuneoff_adapters.kubernetes.create import objects_of
        from tuneoff_adapters.kubernetes.removal import remove

        connection = self._connect()
        remove(connection, objects_of(self._pod_plan, has_experiment=False), REMOVAL_SHARE * seconds)
        connection.close()

    @property
    def _cluster_options(self) -> ClusterOptions:
        spec = self.context.spec
        own = {name: value for name, value in spec.options.items() if name in self.options}
        return cluster_options(replace(spec, options=own), ClusterOptions)

    @property
    def _pod_plan(self) -> PodPlan:
        from tuneoff_adapters.kubernetes.plan import PodPlan, pod_plan

        context = self.context.trial_context
        plan = pod_plan(self.context, self._cluster_options, {})
        in_pods = replace(plan["trial_context"], slots=context.slots, trials=context.trials)
        return PodPlan(**{**plan, "trial_context": in_pods})

    def _connect(self) -> Connection:
        from tuneoff_adapters.kubernetes.connection import Connection

        return Connection.of(self._cluster_options)


class JobsPlatform(KubernetesPlatform):
    """A Job, and so a process, for each trial."""

    changes: ClassVar[Mapping[str, Any]] = {**KubernetesPlatform.changes, "long_lived_workers": False}
