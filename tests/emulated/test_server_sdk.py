"""The unmodified KatibClient against the emulated cluster: what the traces do not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulated.program import Program, program
from emulated.served import INJECTED
from emulated.trace_cases import CASES, Case, manifest

katib = pytest.importorskip("kubeflow.katib", reason="needs kubeflow-katib")
pytestmark = pytest.mark.slow


def client_of(server: Program) -> Any:
    return katib.KatibClient(config_file=str(server.kubeconfig), namespace="sdk")


def submit(client: Any, case: Case = CASES["success"]) -> None:
    client.core_api.create_namespace({"metadata": {"name": "sdk", "labels": INJECTED}})
    client.create_experiment(manifest("first", case, "any:1"))


def test_an_experiment_runs_to_its_optimum(tmp_path: Path) -> None:
    with program(tmp_path / "c") as server:
        client = client_of(server)
        submit(client)
        client.wait_for_experiment_condition("first", timeout=30, polling_interval=1)
        trials = client.list_trials("first")
        drawn = {trial.metadata.name: float(trial.spec.parameter_assignments[0].value) for trial in trials}
        best = client.get_optimal_hyperparameters("first")
        assert drawn[best.best_trial_name] == max(drawn.values()) == float(best.observation.metrics[0].max)
        assert {details["name"] for details in client.get_success_trial_details("first")} == set(drawn)
        assert client.get_suggestion("first").status.suggestion_count == len(drawn) == 3
        assert list(client.get_job_logs("first", trial_name=trials[0].metadata.name)) == []


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
