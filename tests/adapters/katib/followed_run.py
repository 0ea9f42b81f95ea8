"""A followed experiment on a cluster that says what a test tells it to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adapters.katib.fake_cluster import FakeCluster
from adapters.katib.katib_objects import condition, container, ended, event, pod, trial
from adapters.katib.pod_lines import epoch, header, logged, started, whole_log
from builders.katib_specs import spec_of
from builders.specs import make_context
from tuneoff.base.space import Float, SearchSpace
from tuneoff.experiment.spec import Budget, RunSpec
from tuneoff.measure.derived import derive_folder
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.record.run_context import RunContext
from tuneoff_adapters.katib.follow import Follower
from tuneoff_adapters.katib.options import katib_options
from tuneoff_adapters.katib.plan import katib_plan
from tuneoff_adapters.kubernetes.resources import EXPERIMENTS, PODS, TRIALS, Object

FIRST, SECOND, THIRD = "aaaaaaaa", "bbbbbbbb", "cccccccc"
SPACE = SearchSpace({"x": Float(low=0.0, high=1.0)})
DONE = (condition("Running", status="False"), condition("Succeeded", "TrialSucceeded"))
FAILED = (condition("Failed", "TrialFailed. Job reason: BackoffLimitExceeded", "Trial has failed"),)


def follower_of(context: RunContext, cluster: FakeCluster) -> Follower:
    """Return what follows a run's experiment on a cluster; it is not started."""
    return Follower(context, katib_plan(context), katib_options(context.spec), cluster)  # type: ignore[arg-type]


class Run:
    """One followed experiment; the objects' names are this execution's."""

    def __init__(self, folder: Path, *warnings: tuple[str, str, str, str], **changes: Any) -> None:
        """`warnings`: each (kind, what follows the experiment's name, reason, message)."""
        options = {"image": "i", "pending_seconds": 60, **changes.pop("options", {})}
        changes = {"search_space": SPACE, "budget": Budget(trials=2, epochs_per_trial=2), **changes}
        self.spec: RunSpec = spec_of(options=options, **changes)
        self.context: RunContext = make_context(self.spec, folder)
        self.plan = katib_plan(self.context)
        self.cluster = FakeCluster()
        self.cluster.events = [event(kind, f"{self.plan.experiment}{end}", *told) for kind, end, *told in warnings]
        self.follower = follower_of(self.context, self.cluster)
        self.follower.start()

    def experiment(self, *conditions: Object, change: str = "MODIFIED", **status: Any) -> None:
        thing = {"metadata": {"name": self.plan.experiment}, "spec": {}, "status": {"conditions": list(conditions), **status}}
        self.cluster.show(EXPERIMENTS, thing, change)

    def trial(self, suffix: str, *conditions: Object, **more: Any) -> None:
        thing = trial(suffix, *conditions, **{"values": {"x": "0.5"}, **more})
        thing["metadata"]["name"] = f"{self.plan.experiment}-{suffix}"
        self.cluster.show(TRIALS, thing)

    def pod(self, suffix: str, phase: str, *containers: Object, change: str = "MODIFIED", **more: Any) -> None:
        thing = pod(suffix, phase, *containers, **more)
        name = f"{self.plan.experiment}-{suffix}"
        thing["metadata"] = {"name": f"p-{suffix}", "labels": {"job-name": name}}
        self.cluster.show(PODS, thing, change)

    def runs(self, suffix: str, *lines: bytes) -> None:
        """Show a trial whose pod runs and has printed lines."""
        self.trial(suffix, condition("Running"))
        self.pod(suffix, "Running", container(running={}))
        self.cluster.log(f"p-{suffix}", *lines, is_whole=False)

    def completes(self, suffix: str, values: list[float]) -> None:
        self.runs(suffix, *whole_log(suffix, values, {"x": 0.5}, self.context.execution_id))
        self.cluster.log(f"p-{suffix}")
        self.pod(suffix, "Succeeded", ended(0))
        self.trial(suffix, *DONE)

    def begins(self, suffix: str, *epochs: float) -> None:
        lines = [epoch(suffix, number, value) for number, value in enumerate(epochs, 1)]
        self.runs(suffix, *self.logged(header(self.context.execution_id), started(suffix, {"x": 0.5}), *lines))

    def logged(self, *records: bytes) -> list[bytes]:
        return logged(*records, execution=self.context.execution_id)

    def dies(self, suffix: str, *containers: Object, conditions: tuple[Object, ...] = FAILED) -> None:
        self.cluster.log(f"p-{suffix}")
        self.pod(suffix, "Failed", *containers)
        self.trial(suffix, *conditions)

    def succeeds(self, trials: int = 2) -> None:
        """Show the experiment's end, and wait for the run's."""
        self.experiment(condition("Succeeded", "ExperimentMaxTrialsReached"), trials=trials)
        self.follower.wait_end()

    def events(self, kind: type[schema.Event]) -> list[Any]:
        found = [item for _, item in EventLog(self.context.run_dir / "events").merged()]
        return [item for item in found if isinstance(item, kind)]

    def ends(self) -> dict[str, schema.TrialEnded]:
        return {end.trial: end for end in self.events(schema.TrialEnded)}

    def record(self) -> Any:
        return derive_folder(self.context.run_dir, self.spec).record
