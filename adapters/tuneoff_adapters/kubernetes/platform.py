"""Platforms `kubernetes` and `kubernetes-jobs` of adapters whose trials run in a pool of workers. Imports no client."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.adapter import Adapter, Best
from tuneoff.base.packages import install_command, missing_modules
from tuneoff.capabilities import Capabilities
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import sampler_refusal
from tuneoff.run.trial.run_trial import TrialOutcome
from tuneoff_adapters.kubernetes.options import KUBERNETES, LOCAL_OPTIONS, ClusterOptions, cluster_options

if TYPE_CHECKING:
    from pathlib import Path

    from tuneoff.experiment.spec import RunSpec
    from tuneoff.record.events.schema import Event
    from tuneoff.run.trial.pool import Pool
    from tuneoff_adapters.kubernetes.checks import Needs
    from tuneoff_adapters.kubernetes.connection import Connection
    from tuneoff_adapters.kubernetes.plan import PodPlan
    from tuneoff_adapters.kubernetes.pod_follower import PodFollower
    from tuneoff_adapters.kubernetes.resources import Object

JOBS = "kubernetes-jobs"  # platform: a Job per trial, in place of one per worker
REMOVAL_SHARE = 0.8  # of un-deploy's own limit: what hangs is to be named before it
SETUP_SHARE = 0.75  # of deploy's own limit, the same
CLIENT = "tuneoff[kubernetes]"


def on_clusters(local: Capabilities, platforms: Sequence[str], **changes: Any) -> Capabilities:
    """Return the capabilities of an adapter that has these platforms too, where pods are limited, and need a cluster."""
    there = replace(
        local,
        platforms=(*local.platforms, *platforms),
        head_node=True,  # the cluster's control plane
        memory_limiter="container",
        cpu_limiter="container",
        **changes,
    )
    elsewhere = {name: replace(there, long_lived_workers=name != JOBS) for name in platforms}
    return replace(local, platforms=there.platforms, elsewhere={**local.elsewhere, **elsewhere})


class ClusterAdapter(Adapter):
    """What every adapter does on a cluster: it looks at it, makes a place for its pods, and scores what came out of one."""

    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    _connection: Connection | None = None
    _follower: PodFollower[Any] | None = None  # a fresh process has none: what is left are the cluster's objects

    def _connect(self) -> Connection:
        raise NotImplementedError

    @property
    def _outside(self) -> Path:
        """A file that is there while something of this run may be in the cluster; made before it."""
        return self.context.outside

    def _make_place(self, plan: PodPlan, needs: Needs, has_experiment: bool, content: Callable[[], Object]) -> Object:
        """Reach the API server, check that it can take a run, and make what its pods read; return that config map."""
        from tuneoff_adapters.kubernetes.checks import reach
        from tuneoff_adapters.kubernetes.create import made_by, make_place
        from tuneoff_adapters.kubernetes.removal import left_text

        self._connection, cluster = reach(self._connect, needs, plan.namespace)
        versions = {"kubernetes": cluster.server_version, "katib_image": cluster.katib_image, "image": plan.image}
        self.context.note_versions({name: version for name, version in versions.items() if version is not None})
        found = next((text for text in (cluster.server_version, cluster.katib_image) if text and "emulated" in text), None)
        if self._outside == self.context.outside and found is not None:
            self.context.note_emulated(f"the API server at {self._connection.host} is an emulation: it says {found}")
        self._outside.write_text(left_text(made_by(plan, has_experiment), self._connection.host) + "\n")
        return make_place(self._connection, plan, content())

    def test(self, best: Best) -> None:
        """Score the checkpoint that the best trial passed out through its pod's log."""
        problem = self._follower.checkpoint_problems.get(best.trial_id) if self._follower is not None else None
        if problem is not None:
            raise StepError(f"the best trial {best.trial_id} cannot be tested: {problem}")
        super().test(best)


class OnClusters(ClusterAdapter):
    """What an adapter with a pool does on a cluster: it makes the pool there, and removes all that was made."""

    options_kind: ClassVar[type[ClusterOptions]] = ClusterOptions

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        if not cls.is_elsewhere(spec):
            return super().refuse(spec)
        cluster_options(spec, cls.options_kind)
        if missing_modules(("kubernetes",)):
            return f"platform {spec.platform!r} needs the Kubernetes client; run: {install_command(CLIENT)}"
        if spec.experiment.budget.epochs_total is not None:
            return (
                f"pods share no budget of epochs, but got budget.epochs_total={spec.experiment.budget.epochs_total}; "
                "use budget.trials and budget.epochs_per_trial"
            )
        return sampler_refusal(spec, cls.capabilities.on(spec.platform))

    @classmethod
    def is_elsewhere(cls, spec: RunSpec) -> bool:
        """Tell whether a run is on a cluster."""
        return spec.platform in (KUBERNETES, JOBS)

    def cluster_pool(
        self,
        target: str,
        arguments: tuple[Any, ...],
        preload: Sequence[str],
        kinds: Sequence[type] = (TrialOutcome,),
        observe: Callable[[int, Event], None] = lambda worker, event: None,
    ) -> Pool:
        """Reach the API server, check that it can take a run, and return a started pool of workers in its pods."""
        from tuneoff_adapters.kubernetes.checks import Needs, rights_of
        from tuneoff_adapters.kubernetes.layout import WORKER_KEY
        from tuneoff_adapters.kubernetes.manifest import config_map
        from tuneoff_adapters.kubernetes.messages import packed
        from tuneoff_adapters.kubernetes.pool import POOL_RIGHTS, PodPool

        context, options, plan = self.context, self._cluster_options, self._pod_plan
        needs = Needs(is_own_namespace=plan.is_own_namespace, rights=rights_of(options, POOL_RIGHTS))
        work = packed((target, arguments, tuple(preload), plan.checkpoint_bytes, plan.code))
        owner = self._make_place(plan, needs, False, lambda: config_map(plan, {WORKER_KEY: work}))
        assert self._connection is not None
        self._follower = pods = PodPool(
            context,
            plan,
            self._connection,
            owner,
            pending_seconds=options.pending_seconds,
            has_job_per_trial=context.spec.platform == JOBS,
            kinds=kinds,
            observe=observe,
        )
        pods.start(SETUP_SHARE * context.spec.experiment.timeouts.deploy_seconds)
        return pods

    def undeploy(self) -> None:
        """End the pool, delete what was made, and wait until it is gone."""
        pods = self._follower
        pool: Any = getattr(self, "_pool", pods)
        if pool is not None:
            pool.close()
        if pods is not None:
            self.context.note_versions({"image_digests": pods.image_digests()})
        if self.is_elsewhere(self.context.spec) and self._outside.exists():
            self._remove()

    def _remove(self) -> None:
        from tuneoff_adapters.kubernetes.create import made_by
        from tuneoff_adapters.kubernetes.parallel_calls import at_once, value
        from tuneoff_adapters.kubernetes.removal import remove

        connection = self._connection or self._connect()
        made, seconds = made_by(self._pod_plan, has_experiment=False), REMOVAL_SHARE * self.undeploy_seconds
        done = at_once({"pods": lambda: remove(connection, made, seconds), "besides": self.forget}, self.undeploy_seconds)
        for answer in done.values():
            value(answer)
        connection.close()
        self._outside.unlink()

    def forget(self) -> None:
        """Remove what the run has besides in a service of the user's; idempotent. Its pods are being deleted."""

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
