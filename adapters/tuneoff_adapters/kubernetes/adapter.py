"""What every adapter whose trials run in pods does on a cluster. Imports no client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from tuneoff.adapter import Adapter, Best
from tuneoff.errors import StepError
from tuneoff_adapters.kubernetes.options import LOCAL_OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from tuneoff_adapters.kubernetes.checks import Needs
    from tuneoff_adapters.kubernetes.connection import Connection
    from tuneoff_adapters.kubernetes.plan import PodPlan
    from tuneoff_adapters.kubernetes.pod_follower import PodFollower
    from tuneoff_adapters.kubernetes.resources import Object


class ClusterAdapter(Adapter):
    """It looks at it, makes a place for its pods, and scores what came out of one."""

    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    logs: ClassVar[tuple[str, ...]] = ("pods/*.log",)
    doctor: ClassVar[str | None] = "tuneoff_adapters.kubernetes.doctor:checks"
    _connection: Connection | None = None
    _follower: PodFollower[Any] | None = None  # a fresh process has none: what is left are the cluster's objects

    def _connect(self) -> Connection:
        raise NotImplementedError

    @property
    def _outside(self) -> Path:
        """A file that is there while something of this run may be in the cluster; made before it."""
        return self.context.outside

    def _deploy_config_map(self, plan: PodPlan, needs: Needs, has_experiment: bool, content: Callable[[], Object]) -> Object:
        """Reach the API server, check that it can take a run, and make what its pods read; return that config map."""
        from tuneoff_adapters.kubernetes.checks import reach
        from tuneoff_adapters.kubernetes.create import create_config_map, objects_of
        from tuneoff_adapters.kubernetes.removal import leftover_text

        self._connection, cluster = reach(self._connect, needs, plan.namespace)
        versions = {"kubernetes": cluster.server_version, "katib_image": cluster.katib_image, "image": plan.image}
        self.context.note_versions({name: version for name, version in versions.items() if version is not None})
        emulated = next((text for text in (cluster.server_version, cluster.katib_image) if text and "emulated" in text), None)
        if self._outside == self.context.outside and emulated is not None:
            self.context.note_emulated(f"the API server at {self._connection.host} is an emulation: it says {emulated}")
        self._outside.write_text(leftover_text(objects_of(plan, has_experiment), self._connection.host) + "\n")
        return create_config_map(self._connection, plan, content())

    def test(self, best: Best) -> None:
        """Score the checkpoint that the best trial passed out through its pod's log."""
        problem = self._follower.checkpoint_problems.get(best.trial_id) if self._follower is not None else None
        if problem is not None:
            raise StepError(f"the best trial {best.trial_id} cannot be tested: {problem}")
        super().test(best)
