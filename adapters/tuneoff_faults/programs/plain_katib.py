"""A plain program of Katib, as its guide to the Python SDK has it, on the emulation."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tuneoff_faults.plain import Claim, PlainTask, State

NAME, NAMESPACE = "faults", "faults"
LABELS = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
IMAGE = "tuneoff.local/emulated:1"


def objective(parameters: dict[str, str]) -> None:
    """Train; Katib packs the source of this function alone into the pod's command, and reads its lines of `name=value`."""
    from tuneoff_faults.plain import PlainTask

    for _, metrics in PlainTask.read(parameters["folder"]).train(int(parameters["index"])):
        print(*(f"{name}={value}" for name, value in metrics.items()), flush=True)


def serve(task: PlainTask) -> str:
    """Start the emulated cluster, unless it runs since this program was killed; return its kubeconfig."""
    kubeconfig = Path(task.folder) / "kubeconfig"
    if not kubeconfig.exists():
        module, folder = "katib_emulation", f"{task.folder}/cluster"
        command = [sys.executable, "-m", module, folder, "--kubeconfig", str(kubeconfig)]
        subprocess.Popen([*command, "--parent", str(task.parent)], stdin=subprocess.DEVNULL, start_new_session=True)
        while not kubeconfig.exists():
            time.sleep(0.05)
    return str(kubeconfig)


def main(folder: str) -> None:
    task = PlainTask.read(folder)
    from kubeflow import katib

    client = katib.KatibClient(config_file=serve(task), namespace=NAMESPACE)
    if not task.is_again:
        client.core_api.create_namespace({"metadata": {"name": NAMESPACE, "labels": LABELS}})
        client.tune(
            name=NAME,
            objective=objective,
            parameters={
                "index": katib.search.int(min=0, max=len(task.configurations) - 1),
                "folder": folder,
            },
            base_image=IMAGE,
            algorithm_name="grid",
            objective_metric_name=task.metric,
            objective_type="maximize" if task.mode == "max" else "minimize",
            max_trial_count=len(task.configurations),
            parallel_trial_count=task.workers,
            resources_per_trial={"cpu": "1"},
        )
    client.wait_for_experiment_condition(NAME)
    claims = [_claim(trial, task) for trial in client.list_trials(NAME)]
    best = client.get_optimal_hyperparameters(NAME)
    task.answer(claims, (_index(best), _value(best.observation, task)))


def _claim(trial: Any, task: PlainTask) -> Claim:
    conditions = [item.type for item in trial.status.conditions if item.status == "True"] if trial.status else []
    state: State = "completed" if "Succeeded" in conditions else "failed"
    if not {"Succeeded", "Failed", "MetricsUnavailable"} & set(conditions):
        state = "unfinished"
    value = _value(trial.status.observation, task) if trial.status else None
    return Claim(index=_index(trial.spec), state=state, value=value, text=conditions[-1] if conditions else "no condition")


def _index(holder: Any) -> int:
    return next(int(item.value) for item in holder.parameter_assignments if item.name == "index")


def _value(observation: Any, task: PlainTask) -> float | None:
    """Return the greatest (least) value, as Katib ranks by it; texts that are no number are None."""
    for metric in (observation.metrics or ()) if observation is not None else ():
        if metric.name == task.metric:
            try:
                value = float(metric.max if task.mode == "max" else metric.min)
            except (TypeError, ValueError):
                return None
            return None if math.isnan(value) else value
    return None


if __name__ == "__main__":
    os.environ.pop("KUBECONFIG", None)
    main(sys.argv[1])
