"""Platform `kubernetes` in a namespace that others use too: the run sees and removes nothing but its own."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.runs import Made, a_pod_trains, experiment, fixed, make
from emulated.program import Program, program
from emulated.served import INJECTED
from tuneoff.base.clock import NANOSECONDS
from tuneoff.experiment.spec import Budget, Workers
from tuneoff.record.events import schema
from tuneoff.record.flag_meanings import EXCLUDING
from tuneoff.run.progress import LiveRun
from waiting import until

pytestmark = pytest.mark.slow

TEAM = "/api/v1/namespaces/team"
EXPERIMENTS = "/apis/kubeflow.org/v1beta1/namespaces/team/experiments"
JOBS = "/apis/batch/v1/namespaces/team/jobs"
COLLECTIONS = (EXPERIMENTS, JOBS, f"{TEAM}/configmaps", f"{TEAM}/pods", EXPERIMENTS.replace("experiments", "trials"))
SLEEP = {"name": "training-container", "image": "any", "command": ["sleep", "300"], "args": ["${trialParameters.x}"]}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Program]:
    """A cluster with a namespace in which others' work goes on: an experiment, a Job, a config map."""
    with program(tmp_path / "cluster") as cluster:
        cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "team", "labels": INJECTED}})
        cluster.ask("POST", f"{TEAM}/configmaps", {"metadata": {"name": "tuneoff"}, "data": {"a": "b"}})
        job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{**SLEEP, "args": []}]}}}
        cluster.ask("POST", JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "nightly"}, "spec": job})
        cluster.ask("POST", EXPERIMENTS, foreign())
        yield cluster


def foreign() -> dict[str, Any]:
    """Return an experiment of somebody else's: two trials that sleep."""
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [SLEEP]}}}
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": "foreign", "labels": {"tuneoff.io/execution": "another"}},
        "spec": {
            "objective": {"type": "maximize", "objectiveMetricName": "accuracy"},
            "algorithm": {"algorithmName": "random"},
            "maxTrialCount": 2,
            "parallelTrialCount": 2,
            "parameters": [{"name": "x", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "0.2"}}],
            "trialTemplate": {
                "primaryContainerName": "training-container",
                "trialParameters": [{"name": "x", "reference": "x"}],
                "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": job},
            },
        },
    }


def uids(cluster: Program) -> set[tuple[str, str]]:
    """Return name and uid of all that is in the namespace."""
    found = [item["metadata"] for path in COLLECTIONS for item in cluster.ask("GET", path)["items"]]
    return {(one["name"], one["uid"]) for one in found if "deletionTimestamp" not in one}


def run(cluster: Program, folder: Path, **changes: Any) -> Made:
    spec = experiment("surrogate", **{**fixed(4), "budget": Budget(trials=4, epochs_per_trial=3), **changes})
    return make("katib", spec, folder / "results", platform="kubernetes", options=options(cluster, namespace="team"))


def interrupted(cluster: Program, folder: Path, before: Callable[[], None]) -> Made:
    """Run trials that take long, and interrupt them once one has begun."""
    interrupt = threading.Event()

    def stop(live: LiveRun, folder: Path) -> bool:
        if not a_pod_trains(folder):
            return False
        before()
        interrupt.set()
        return True

    spec = experiment("sleep", {"epoch_seconds": 0.3}, budget=Budget(trials=20, epochs_per_trial=50), workers=Workers(count=2))
    given = options(cluster)
    return make("katib", spec, folder / "results", platform="kubernetes", options=given, act=stop, interrupt=interrupt)


def options(cluster: Program, **more: str) -> dict[str, str]:
    return {"kubeconfig": str(cluster.kubeconfig), "image": "any", **more}


def undeploy_seconds(made: Made) -> list[float]:
    """Return how long each un-deploy of a run took."""
    started = [event.t for event in made.events(schema.StepStarted) if event.step == "undeploy"]
    ended = [event.t for event in made.events(schema.StepEnded) if event.step == "undeploy"]
    return [(end - start) / NANOSECONDS for start, end in zip(started, ended, strict=True)]


def test_a_run_in_a_shared_namespace_leaves_all_else_untouched(cluster: Program, tmp_path: Path) -> None:
    before = settled(cluster)
    assert {"tuneoff", "nightly", "foreign"} <= {name for name, _ in before}
    made = run(cluster, tmp_path)
    assert (made.record.status, made.record.reason) == ("done", None)
    assert [trial.state for trial in made.record.trials] == ["completed"] * 4
    assert ["v1.36.0-emulated" in flag.text for flag in made.record.flags if flag.name in EXCLUDING] == [True]
    assert len(made.events(schema.TrialStarted)) == 4
    assert "remove_experiment" in [stage.name for stage in made.events(schema.Stage)]
    assert uids(cluster) == before
    assert cluster.runs_namespaces() == []
    assert [flag.name for flag in made.record.flags if flag.name.startswith("left_")] == []


def test_an_interrupted_undeploy_that_runs_out_of_time_has_asked_for_everything_and_says_what_stays(
    cluster: Program, tmp_path: Path
) -> None:
    def hold() -> None:
        (namespace,) = cluster.runs_namespaces()
        held = {"metadata": {"name": "held", "finalizers": ["example.org/slow"]}}
        cluster.ask("POST", f"/api/v1/namespaces/{namespace}/configmaps", held)

    made = interrupted(cluster, tmp_path, hold)
    assert made.record.status == "interrupted"
    first, second = undeploy_seconds(made)  # both came to their own end: neither was killed
    assert (first < 7.0, second < 4.0) == (True, True)
    (namespace,) = cluster.runs_namespaces()
    errors = [event.error for event in made.events(schema.StepEnded) if event.step == "undeploy"]
    for error in errors:
        assert f"namespace {namespace} is still terminating after" in error
        assert f"see: kubectl get namespace {namespace} -o yaml" in error
    assert cluster.ask("GET", f"/api/v1/namespaces/{namespace}")["metadata"]["deletionTimestamp"]
    for kind in ("experiments", "trials"):
        assert cluster.ask("GET", f"/apis/kubeflow.org/v1beta1/namespaces/{namespace}/{kind}")["items"] == []
    patch(cluster, f"/api/v1/namespaces/{namespace}/configmaps/held")
    until(lambda: cluster.runs_namespaces() == [])


def patch(cluster: Program, path: str) -> None:
    """Remove an object's finalizers."""
    token = cluster.config["users"][0]["user"]["token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/merge-patch+json"}
    body = json.dumps({"metadata": {"finalizers": None}}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{cluster.port}{path}", body, headers, method="PATCH")
    urllib.request.urlopen(request, timeout=10).close()


def settled(cluster: Program) -> set[tuple[str, str]]:
    """Return what is in the namespace once the others' three pods run."""
    until(lambda: sum(pod["status"].get("phase") == "Running" for pod in cluster.ask("GET", f"{TEAM}/pods")["items"]) == 3)
    return uids(cluster)
