"""The unmodified KatibClient against the emulated cluster, as a user of the SDK would call it."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from emulated.program import Program, program
from emulated.served import INJECTED
from waiting import until

katib = pytest.importorskip("kubeflow.katib", reason="needs kubeflow-katib")
pytestmark = pytest.mark.slow

METRICS = "/var/log/katib/metrics.log"
TRAINING = """\
import sys, time
slope, path = float(sys.argv[1]), sys.argv[2]
with open(path, "w") as file:
    for epoch in range(1, 4):
        file.write(f"2026-01-01T00:00:0{epoch}.000000Z accuracy={slope * (epoch if epoch < 3 else 1)}\\n")
print("trained with", slope, flush=True)
time.sleep(float(sys.argv[3]))
sys.exit(int(sys.argv[4]))
"""


class User:
    """A user with a client, a namespace and a training script."""

    def __init__(self, client: Any, script: Path, server: Program) -> None:
        self.client = client
        self.script = script
        self.server = server

    def experiment(self, name: str, trials: int = 3, seconds: float = 0, code: int = 0, **spec: Any) -> dict[str, Any]:
        """Return an experiment whose trials take so long and end with this exit code."""
        command = [sys.executable, str(self.script), "${trialParameters.slope}", METRICS, str(seconds), str(code)]
        container = {"name": "training-container", "image": "any:1", "command": command}
        job = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
        source = {"fileSystemPath": {"path": METRICS, "kind": "File", "format": "TEXT"}}
        return {
            "apiVersion": "kubeflow.org/v1beta1",
            "kind": "Experiment",
            "metadata": {"name": name},
            "spec": {
                "objective": {"type": "maximize", "objectiveMetricName": "accuracy"},
                "algorithm": {"algorithmName": "random", "algorithmSettings": [{"name": "random_state", "value": "1"}]},
                "maxTrialCount": trials,
                "parallelTrialCount": 2,
                "maxFailedTrialCount": 1,
                "parameters": [{"name": "slope", "parameterType": "double", "feasibleSpace": {"min": "0.1", "max": "0.2"}}],
                "metricsCollectorSpec": {"collector": {"kind": "File"}, "source": source},
                "trialTemplate": {
                    "retain": True,
                    "primaryContainerName": "training-container",
                    "trialParameters": [{"name": "slope", "reference": "slope"}],
                    "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": job},
                },
                **spec,
            },
        }

    def wait(self, name: str, condition: str = "Succeeded") -> Any:
        """Wait with the SDK's own call."""
        return self.client.wait_for_experiment_condition(name, expected_condition=condition, timeout=30, polling_interval=1)

    def read(self, plural: str, name: str) -> dict[str, Any] | None:
        """Return the plain object; None if it is gone."""
        from kubernetes.client import ApiException

        try:
            found: dict[str, Any] = self.client.custom_api.get_namespaced_custom_object(
                "kubeflow.org", "v1beta1", "sdk", plural, name
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return found


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    folder = tmp_path_factory.mktemp("sdk")
    script = folder / "training.py"
    script.write_text(TRAINING)
    with program(folder / "cluster") as server:
        client = katib.KatibClient(config_file=str(server.kubeconfig), namespace="sdk")
        client.core_api.create_namespace({"metadata": {"name": "sdk", "labels": INJECTED}})
        yield User(client, script, server)


def test_an_experiment_runs_to_its_optimum(user: User, capsys: pytest.CaptureFixture[str]) -> None:
    assert user.client.create_experiment(user.experiment("first")) is None
    user.wait("first")
    trials = user.client.list_trials("first")
    assert len(trials) == 3
    assert [trial.status.conditions[-1].type for trial in trials] == ["Succeeded"] * 3
    slopes = {trial.metadata.name: float(trial.spec.parameter_assignments[0].value) for trial in trials}
    best = user.client.get_optimal_hyperparameters("first")
    assert slopes[best.best_trial_name] == max(slopes.values())
    metric = best.observation.metrics[0]
    assert metric.name == "accuracy"
    assert float(metric.max) == 2 * max(slopes.values())  # the second of three reports
    assert float(metric.min) == float(metric.latest) == max(slopes.values())
    assert {details["name"] for details in user.client.get_success_trial_details("first")} == set(slopes)
    assert user.client.is_experiment_succeeded("first")
    assert user.client.get_suggestion("first").status.suggestion_count == 3
    name = trials[0].metadata.name
    assert list(user.client.get_job_logs("first", trial_name=name)) == [f"trained with {slopes[name]}"]


def test_a_model_of_the_sdk_is_taken_too(user: User) -> None:
    plain = SimpleNamespace(data=json.dumps(user.experiment("model", trials=2)))
    user.client.create_experiment(user.client.api_client.deserialize(plain, "V1beta1Experiment"))
    user.wait("model")
    assert user.client.get_trial(user.client.list_trials("model")[0].metadata.name).status.observation.metrics


def test_the_budget_of_a_running_experiment_is_edited(user: User) -> None:
    user.client.create_experiment(user.experiment("edited", trials=2, seconds=1))

    def edit() -> bool:
        with contextlib.suppress(RuntimeError):  # it lost against an update of the status: documented, and repeated
            user.client.edit_experiment_budget("edited", max_trial_count=4, parallel_trial_count=4)
            return True
        return False

    until(edit)
    user.wait("edited")
    assert len(user.client.list_trials("edited")) == 4


def test_deleting_a_running_experiment_leaves_nothing(user: User) -> None:
    user.client.create_experiment(user.experiment("deleted", seconds=60))
    core = user.client.core_api

    def pods() -> list[Any]:
        found: list[Any] = core.list_namespaced_pod("sdk", label_selector="katib.kubeflow.org/experiment=deleted").items
        return found

    until(lambda: [pod for pod in pods() if pod.status.phase == "Running"])
    started = time.monotonic()
    assert user.client.delete_experiment("deleted") is None
    until(lambda: user.read("experiments", "deleted") is None and not user.client.list_trials("deleted") and not pods())
    assert time.monotonic() - started < 30  # its pod would sleep for 60 s
    assert user.read("suggestions", "deleted") is None


def test_an_experiment_goes_on_with_a_server_that_was_killed_and_started_again(user: User, tmp_path: Path) -> None:
    with program(tmp_path / "c") as server:
        client = katib.KatibClient(config_file=str(server.kubeconfig), namespace="sdk")
        client.core_api.create_namespace({"metadata": {"name": "sdk", "labels": INJECTED}})
        client.create_experiment(user.experiment("again", trials=6, seconds=0.3))
        until(
            lambda: [
                trial for trial in client.list_trials("again") if trial.status and trial.status.conditions[-1].type == "Succeeded"
            ]
        )
        before = {trial.metadata.name for trial in client.list_trials("again")}
        server.process.kill()
        server.wait()
    with program(tmp_path / "c") as server:
        client = katib.KatibClient(config_file=str(server.kubeconfig), namespace="sdk")
        assert before <= {trial.metadata.name for trial in client.list_trials("again")}
        finished = until(lambda: ended(client.get_experiment("again")), 30)
        assert finished in ("Succeeded", "Failed")  # Failed: both trials that ran were lost, and one failure is allowed


def objective(parameters: dict[str, str]) -> None:
    """Katib's own first example: the SDK sends this source to the trial."""
    result = 4 * int(parameters["a"]) - float(parameters["b"]) ** 2
    print(f"result={result}")


def test_first_example_of_katibs_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the SDK's script makes a temporary folder and leaves it
    with program(tmp_path / "c") as server:
        client = katib.KatibClient(config_file=str(server.kubeconfig), namespace="kubeflow")
        parameters = {"a": katib.search.int(min=10, max=20), "b": katib.search.double(min=0.1, max=0.2)}
        client.tune(
            name="tune-experiment",
            objective=objective,
            parameters=parameters,
            objective_metric_name="result",
            max_trial_count=4,
            parallel_trial_count=2,
            resources_per_trial={"cpu": "2"},
        )
        client.wait_for_experiment_condition("tune-experiment", timeout=60, polling_interval=1)
        best = client.get_optimal_hyperparameters("tune-experiment")
        values = {assignment.name: float(assignment.value) for assignment in best.parameter_assignments}
        assert float(best.observation.metrics[0].latest) == pytest.approx(4 * values["a"] - values["b"] ** 2)


def ended(experiment: Any) -> str | None:
    """Return the condition with which an experiment ended; None: it has not."""
    kinds = [c.type for c in experiment.status.conditions if c.status == "True"]
    return next((kind for kind in kinds if kind in ("Succeeded", "Failed")), None)
