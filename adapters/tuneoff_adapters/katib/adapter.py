"""The Katib adapter. Importing it imports neither the SDK nor what runs an experiment: each step does, when its turn comes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tuneoff.adapter import Adapter, Best, Capabilities, import_framework
from tuneoff.errors import StepError
from tuneoff.experiment.strategies import LISTED
from tuneoff_adapters.katib import offers
from tuneoff_adapters.katib.options import EMULATED, katib_options
from tuneoff_adapters.kubernetes.options import LOCAL_OPTIONS
from tuneoff_adapters.optuna_samplers import flag_unused_model
from tuneoff_platforms.time_limits import REMOVAL_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tuneoff.experiment.spec import RunSpec
    from tuneoff.experiment.translation import FrameworkSpace
    from tuneoff.record.run_context import RunContext
    from tuneoff_adapters.katib.follow import Follower
    from tuneoff_adapters.katib.platforms import EmulatedServer
    from tuneoff_adapters.kubernetes.connection import Connection

SUBMITTED = "experiment.json"  # below the framework's folder: for the reader, and for kubectl
DRAIN_SECONDS = 1.0  # for what trials that have ended still have to say, before their pods are deleted
STARTING_SECONDS = 1.1  # of un-deploy's own limit, before the removal: the process, or the drain


class KatibAdapter(Adapter):
    """Drives Katib through its SDK: one Experiment in a namespace of its own, one pod per trial."""

    capabilities: ClassVar[Capabilities] = offers.CAPABILITIES
    fault_tools: ClassVar[str] = "tuneoff_faults.frameworks:KATIB"
    doctor: ClassVar[str | None] = "tuneoff_adapters.katib.doctor:checks"
    local_options: ClassVar[frozenset[str]] = LOCAL_OPTIONS
    logs: ClassVar[tuple[str, ...]] = ("pods/*.log",)
    _connection: Connection | None = None
    _follower: Follower | None = None  # a fresh process has none: what is left are the cluster's objects

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self._server: EmulatedServer | None = None
        if context.spec.platform == EMULATED:
            from tuneoff_adapters.katib.platforms import EmulatedServer

            self._server = EmulatedServer(context)

    @classmethod
    def capabilities_on(cls, platform: str) -> Capabilities:
        return offers.capabilities_on(platform)

    @classmethod
    def refuse(cls, spec: RunSpec) -> str | None:
        return offers.refusal(spec)

    @classmethod
    def strategies(cls, spec: RunSpec) -> dict[str, str]:
        return offers.implementations(spec)

    def draw(self, count: int) -> Iterator[Mapping[str, object]]:
        if self._server is None:
            raise NotImplementedError("the services of a cluster's Katib answer a running Experiment alone")
        from tuneoff_adapters.katib.drawing import draw

        return draw(self.context, count)

    def framework_space(self) -> FrameworkSpace:
        from tuneoff_adapters.katib.drawing import framework_space

        return framework_space(self.context)

    def deploy(self) -> None:
        """Reach the API server, check that it can take a run, and make what its pods read, in the run's own namespace."""
        from tuneoff_adapters.katib.checks import check_client, katib_needs
        from tuneoff_adapters.katib.manifest import config_map_manifest
        from tuneoff_adapters.katib.plan import katib_plan
        from tuneoff_adapters.kubernetes.deploy import deploy_config_map

        spec = self.context.spec
        check_client()
        import_framework(spec.adapter, self.capabilities)
        plan = katib_plan(self.context)
        if self._server is not None:
            self._server.start()
        needs = katib_needs(katib_options(spec), is_listed=spec.experiment.sampler.name in LISTED)
        self._connection, _ = deploy_config_map(
            self.context, self._connect, plan, needs, lambda: config_map_manifest(plan), self._outside, has_experiment=True
        )

    def setup(self) -> None:
        """Submit the Experiment; ends when Katib has made its first trial."""
        from tuneoff_adapters.katib.follow import Follower
        from tuneoff_adapters.katib.manifest import experiment_manifest
        from tuneoff_adapters.katib.plan import katib_plan
        from tuneoff_adapters.kubernetes.create import submit

        plan = katib_plan(self.context)
        assert self._connection is not None
        self._follower = Follower(self.context, plan, katib_options(self.context.spec), self._connection)
        self._follower.start()
        experiment = experiment_manifest(plan)
        (self.context.work_dir / SUBMITTED).write_text(json.dumps(experiment, indent=1) + "\n")
        flag_unused_model(self.context, offers.STARTUP_TRIALS)
        submit(self._connection, plan, experiment)
        self._follower.wait_first_trial()

    def run_trials(self) -> None:
        assert self._follower is not None
        try:
            self._follower.wait_end()
        finally:
            self.context.note_versions({"image_digests": self._follower.image_digests()})

    def collect_results(self) -> Best | None:
        from tuneoff_adapters.katib.results import NOT_COMPLETED, optimum
        from tuneoff_adapters.kubernetes.layout import OBJECTIVE

        follower = self._follower
        assert follower is not None
        result = optimum(follower.experiment, follower.ledger.reports(), self.context.spec.experiment.objective, OBJECTIVE)
        if result is None:
            return None
        best, note = result
        if note is not None:
            self.context.flag(NOT_COMPLETED, note)
        return best

    def test(self, best: Best) -> None:
        """Score the checkpoint that the best trial passed out through its pod's log."""
        problem = self._follower.checkpoint_problems.get(best.trial_id) if self._follower is not None else None
        if problem is not None:
            raise StepError(f"the best trial {best.trial_id} cannot be tested: {problem}")
        super().test(best)

    def undeploy(self) -> None:
        """Delete what was made, wait until it is gone, and end the emulated server if there is one."""
        if self._follower is not None:
            self._follower.stop(DRAIN_SECONDS)
        try:
            # an emulated server that is gone took its pods along, and its objects are files of the run
            if self._outside.exists() and (self._server is None or self._server.is_running):
                self._remove()
        finally:
            if self._server is not None:
                self._server.end()

    def _remove(self) -> None:
        from tuneoff.base.clock import NANOSECONDS
        from tuneoff_adapters.katib.plan import katib_plan
        from tuneoff_adapters.kubernetes.create import objects_of
        from tuneoff_adapters.kubernetes.removal import remove

        plan, options = katib_plan(self.context), katib_options(self.context.spec)
        connection = self._connection or self._connect()
        within_seconds = max(REMOVAL_SHARE * self.undeploy_seconds - STARTING_SECONDS, STARTING_SECONDS)
        seconds = remove(connection, objects_of(plan), within_seconds, options.katib_namespace)
        self.context.events.write("stage", name="remove_experiment", duration_ns=int(seconds * NANOSECONDS))
        connection.close()
        self._outside.unlink()

    @property
    def _outside(self) -> Path:
        """An emulated cluster's objects are files of the run, so of them nothing is outside."""
        return self.context.outside if self._server is None else self.context.work_dir / "in_cluster"

    def _connect(self) -> Connection:
        from tuneoff_adapters.kubernetes.connection import Connection

        options, server = katib_options(self.context.spec), self._server
        return Connection.of(options) if server is None else Connection.of(options, server.kubeconfig, server.check)
