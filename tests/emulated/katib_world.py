"""Katib's controllers on a store for tests: a node that does what the test says, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from katib_emulation.admission import admit_experiment
from katib_emulation.collector import Observation, Observations
from katib_emulation.controllers import Controllers, reconcilers
from katib_emulation.objects import EXPERIMENTS, JOBS, NAMESPACES, SUGGESTIONS, TRIALS, Store, conditions_of, has_condition

Object = dict[str, Any]

NAMESPACE: Object = {"metadata": {"name": "ns", "labels": {"katib.kubeflow.org/metrics-collector-injection": "enabled"}}}
JOB_ENDS = {
    "Complete": ("CompletionsReached", "Reached expected number of succeeded pods"),
    "Failed": ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
}
DEADLINE_SECONDS = 30


def experiment_named(name: str = "e1", **spec: Any) -> Object:
    """Return an Experiment that Katib accepts; `spec` replaces parts of its spec (None removes them)."""
    container = {
        "name": "training-container",
        "image": "image",
        "command": [
            "train",
            "--trial=${trialParameters.trialName}",
            "--lr=${trialParameters.lr}",
            "--act=${trialParameters.act}",
        ],
    }
    whole: Object = {
        "objective": {"type": "maximize", "objectiveMetricName": "accuracy"},
        "algorithm": {"algorithmName": "random", "algorithmSettings": [{"name": "random_state", "value": "7"}]},
        "parallelTrialCount": 2,
        "maxTrialCount": 4,
        "parameters": [
            {"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "0.9"}},
            {"name": "act", "parameterType": "categorical", "feasibleSpace": {"list": ["relu", "tanh"]}},
        ],
        "trialTemplate": {
            "retain": True,
            "primaryContainerName": "training-container",
            "trialParameters": [
                {"name": "lr", "reference": "lr"},
                {"name": "act", "reference": "act"},
                {"name": "trialName", "reference": "${trialSpec.Name}"},
            ],
            "trialSpec": {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
            },
        },
    }
    whole |= spec
    metadata = {"name": name, "namespace": "ns", "labels": {"team": "a"}}
    kept = {key: value for key, value in whole.items() if value is not None}
    return {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": metadata, "spec": kept}


class World:
    """A store with Katib's controllers at work, and without that of Jobs."""

    def __init__(self) -> None:
        self.store, self.observations = Store(), Observations()
        of_katib = {kind: each for kind, each in reconcilers(self.store, self.observations).items() if kind is not JOBS}
        self.controllers = Controllers(self.store, of_katib)
        self.store.create(NAMESPACES, NAMESPACE)
        self.controllers.start()

    def close(self) -> None:
        """Stop, as at the end of the server."""
        self.controllers.stop()
        self.store.close()

    def submit(self, experiment: Object) -> str:
        """Create an Experiment through admission; return its name."""
        admitted = admit_experiment(experiment, None, self.store.get(NAMESPACES, "ns"))
        name: str = self.store.create(EXPERIMENTS, admitted, "ns")["metadata"]["name"]
        return name

    def experiment(self, name: str = "e1") -> Object:
        """Return the Experiment."""
        return self.store.get(EXPERIMENTS, name, "ns")

    def suggestion(self, name: str = "e1") -> Object:
        """Return the Suggestion."""
        return self.store.get(SUGGESTIONS, name, "ns")

    def trials(self) -> list[Object]:
        """Return all Trials."""
        return self.store.list(TRIALS, "ns")

    def trial(self, name: str) -> Object:
        """Return a Trial."""
        return self.store.get(TRIALS, name, "ns")

    def jobs(self) -> list[str]:
        """Return the names of the Jobs without an end: what would run."""
        jobs = self.store.list(JOBS, "ns")
        return [job["metadata"]["name"] for job in jobs if not has_condition(job, "Complete", "Failed")]

    def end_job(self, name: str, values: Sequence[str] = (), end: str = "Complete") -> None:
        """End a Job as the node does: metrics first, then the condition."""
        lines = [Observation(f"2026-01-01T00:00:{i:02d}Z", "accuracy", value) for i, value in enumerate(values)]
        if lines:
            self.observations.report(name, lines)
        reason, message = JOB_ENDS[end]
        condition = {"type": end, "status": "True", "reason": reason, "message": message}
        self.store.update(JOBS, name, "ns", lambda job: job.setdefault("status", {}).update(conditions=[condition]))

    def wait(self, what: Callable[[], Any]) -> Any:
        """Return what `what` returns as soon as it is true; an object that is missing counts as false."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = what()
            if found:
                return found
            assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS} s; experiments: {self.store.list(EXPERIMENTS)}"
            time.sleep(0.002)

    def wait_jobs(self, count: int) -> list[str]:
        """Wait until exactly `count` Jobs run; return their names."""
        return self.wait(lambda: jobs if len(jobs := self.jobs()) == count else None)  # type: ignore[no-any-return]

    def wait_condition(self, kind: str, name: str = "e1") -> Object:
        """Wait for a True condition of the Experiment; return the condition."""

        def condition() -> Object | None:
            return next((c for c in conditions_of(self.experiment(name)) if (c["type"], c["status"]) == (kind, "True")), None)

        return self.wait(condition)  # type: ignore[no-any-return]

    def run_all(self, values: Callable[[int], Sequence[str]], end: Callable[[int], str] = lambda i: "Complete") -> int:
        """End every Job that appears until the Experiment is completed; return how many were ended."""
        ended = 0
        while not has_condition(self.experiment(), "Succeeded", "Failed"):
            for name in self.jobs():
                self.end_job(name, values(ended), end(ended))
                ended += 1
            time.sleep(0.001)
        return ended


@contextmanager
def world() -> Iterator[World]:
    """Yield running controllers; stop them at the end."""
    made = World()
    try:
        yield made
    finally:
        made.close()
