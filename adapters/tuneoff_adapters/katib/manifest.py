"""What the adapter submits, as plain objects: config map, Experiment.

Every field that the meaning depends on is set, also where a server's default is the same today: Katib's CRDs have no schema,
so a misspelt field is kept and ignored, and a missing one is filled in by a webhook.
"""

from __future__ import annotations

import json

from tuneoff_adapters.katib.plan import KatibAlgorithm, KatibPlan
from tuneoff_adapters.kubernetes import layout
from tuneoff_adapters.kubernetes.manifest import Manifest, config_map, job_manifest, metadata

TRIAL_NAME = "trial-name"  # a trial parameter; no dimension's name has a dash
# Katib's own pattern of a report, and what tells that a Job is over; its webhook fills these in where they are missing.
METRICS_FORMAT = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
SUCCESS_CONDITION = 'status.conditions.#(type=="Complete")#|#(status=="True")#'
FAILURE_CONDITION = 'status.conditions.#(type=="Failed")#|#(status=="True")#'


def config_map_manifest(plan: KatibPlan) -> Manifest:
    """Return what each pod reads: the trial's context, and how to decode Katib's parameters.

    Raises:
        UnsupportedError: it is larger than a config map may be.
    """
    settings = {
        **plan.space.to_json(),
        layout.STOPS: dict(plan.stops),
        layout.CHECKPOINT_BYTES: plan.checkpoint_bytes,
        layout.CODE: plan.code,
    }
    text = json.dumps(settings, separators=(",", ":"), ensure_ascii=False)
    return config_map(plan, {layout.TRANSLATION_KEY: text})


def experiment_manifest(plan: KatibPlan) -> Manifest:
    """Return the Experiment."""
    strategy = {"name": layout.OBJECTIVE, "value": "min" if plan.direction == "minimize" else "max"}  # a trial's best epoch
    spec: Manifest = {
        "objective": {
            "type": plan.direction,
            "objectiveMetricName": layout.OBJECTIVE,
            "additionalMetricNames": [],
            "metricStrategies": [strategy],
            **({} if plan.goal is None else {"goal": plan.goal}),
        },
        "algorithm": _algorithm(plan.algorithm),
        "parallelTrialCount": plan.parallel,
        "maxTrialCount": plan.trials,  # no maxFailedTrialCount: core counts failures, and a scripted stop is one for Katib
        "resumePolicy": "Never",
        "parameters": plan.space.parameters(),
        "metricsCollectorSpec": {
            "collector": {"kind": "File"},
            "source": {
                "fileSystemPath": {"path": layout.METRICS_FILE, "kind": "File", "format": "TEXT"},
                "filter": {"metricsFormat": [METRICS_FORMAT]},
            },
        },
        "trialTemplate": {
            "retain": True,  # else the Job, and the log of its pod, are gone within a second of the end
            "primaryContainerName": layout.CONTAINER,
            "successCondition": SUCCESS_CONDITION,
            "failureCondition": FAILURE_CONDITION,
            "trialParameters": [
                {"name": TRIAL_NAME, "reference": "${trialSpec.Name}"},
                *({"name": name, "reference": name} for name in plan.space.dimensions),
            ],
            "trialSpec": job_manifest(plan, {}, _command(plan), plan.pod_seconds),
        },
    }
    if plan.early_stopping is not None:
        spec["earlyStopping"] = _algorithm(plan.early_stopping)
    return {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": metadata(plan, plan.experiment),
        "spec": spec,
    }


def _algorithm(algorithm: KatibAlgorithm) -> Manifest:
    settings = [{"name": name, "value": value} for name, value in algorithm.settings.items()]
    return {"algorithmName": algorithm.name, "algorithmSettings": settings}


def _command(plan: KatibPlan) -> list[str]:
    """Return the pod's command; Katib's webhook joins it with blanks into a line of `sh -c`, without any quoting."""
    words = ["python", "-m", layout.POD_MODULE, _placeholder(TRIAL_NAME)]
    return words + [f"{name}={_placeholder(name)}" for name in plan.space.dimensions]


def _placeholder(name: str) -> str:
    return "${trialParameters." + name + "}"
