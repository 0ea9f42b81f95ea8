"""The Katib adapter. Importing it does not import the SDK: each step does, when its turn comes."""

from __future__ import annotations

from typing import ClassVar

from tuneoff.adapter import Adapter, Best
from tuneoff.capabilities import Capabilities
from tuneoff.errors import StepError
from tuneoff.experiment.spec import RunSpec
from tuneoff.packages import import_framework
from tuneoff.workload import Scores
from tuneoff_adapters.katib import offers
from tuneoff_adapters.katib.checks import check_client, check_cluster
from tuneoff_adapters.katib.connection import Connection
from tuneoff_adapters.katib.follow import Follower
from tuneoff_adapters.katib.layout import OBJECTIVE
from tuneoff_adapters.katib.manifest import config_map_manifest, experiment_manifest, namespace_manifest
from tuneoff_adapters.katib.options import EMULATED, katib_options
from tuneoff_adapters.katib.plan import LABEL, katib_plan
from tuneoff_adapters.katib.platforms import EmulatedServer
from tuneoff_adapters.katib.removal import remove
from tuneoff_adapters.katib.resources import CONFIG_MAPS, NAMESPACES
from tuneoff_adapters.katib.results import NOT_COMPLETED, optimum

DRAIN_SECONDS = 1.0  # for what trials that have ended still have to say, before their pods are deleted


class KatibAdapter(Adapter):
    """Drives Katib through its SDK: one Experiment in a namespace of its own, one pod per trial."""

    capabilities: ClassVar[Capabilities] = offers.CAPABILITIES

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return offers.refusal(spec)

    @classmethod
    def strategies(cls, spec: RunSpec) -> dict[str, str]:
        return offers.implementations(spec)

    def deploy(self) -> None:
        """Reach the API server, check that it can take a run, and make the run's namespace with what its pods read."""
        spec = self.context.spec
        import_framework(spec.adapter, self.capabilities)
        check_client()
        plan = katib_plan(self.context)
        if spec.platform == EMULATED:
            EmulatedServer(self.context).start()
        self._connection = self._connect()
        check_cluster(self._connection, katib_options(spec), plan.namespace)
        self._connection.create(NAMESPACES, namespace_manifest(plan))
        self._connection.create(CONFIG_MAPS, config_map_manifest(plan), plan.namespace)

    def setup(self) -> None:
        """Submit the Experiment; ends when Katib has made its first trial."""
        plan = katib_plan(self.context)
        self._follower = Follower(self.context, plan, katib_options(self.context.spec), self._connection)
        self._follower.start()
        self._connection.create_experiment(experiment_manifest(plan))
        self._follower.wait_first_trial()

    def run_trials(self) -> None:
        self._follower.wait_end()

    def collect_results(self) -> Best | None:
        follower = self._follower
        found = optimum(follower.experiment, follower.book.outcomes(), self.context.spec.experiment.objective, OBJECTIVE)
        if found is None:
            return None
        if found.note is not None:
            self.context.flag(NOT_COMPLETED, found.note)
        return found.best

    def test(self, best: Best) -> Scores:
        """Score the checkpoint that the best trial passed out through its pod's log."""
        problem = self._follower.book.checkpoint_problems.get(best.trial_id)
        if problem is not None:
            raise StepError(f"the best trial {best.trial_id} cannot be tested: {problem}")
        return super().test(best)

    def undeploy(self) -> None:
        """Delete the namespace with all that is in it, wait until it is gone, and end the emulated server if there is one."""
        follower: Follower | None = getattr(self, "_follower", None)
        if follower is not None:
            follower.stop(DRAIN_SECONDS)
        server = EmulatedServer(self.context) if self.context.spec.platform == EMULATED else None
        if server is not None and not server.was_started:
            return
        try:
            plan = katib_plan(self.context)
            connection: Connection = getattr(self, "_connection", None) or self._connect()
            remove(connection, plan.namespace, plan.experiment, (LABEL, self.context.execution_id), 30.0)
        finally:
            if server is not None:
                server.end()

    def _connect(self) -> Connection:
        """Return a connection; on `emulated` to the server of this execution, which is started again where it is gone."""
        spec = self.context.spec
        kubeconfig = EmulatedServer(self.context).start() if spec.platform == EMULATED else None
        return Connection.of(katib_options(spec), kubeconfig)
