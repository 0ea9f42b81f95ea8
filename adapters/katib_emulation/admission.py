"""What Katib's webhooks do with an Experiment before it is stored: fill in defaults, check it, in Katib's words (v0.19.0).

Katib's CRDs have no schema: whatever these rules do not refuse is stored. Whatever the emulation alone refuses, because nothing
here could run it, has "the emulated Katib" in its text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from katib_emulation.objects import Object, StatusError, copied, has_condition

INJECTION_LABEL = "katib.kubeflow.org/metrics-collector-injection"
TRIAL_NAME = "${trialSpec.Name}"
"""The one reference to the trial itself that is understood."""

ALGORITHMS = ("random", "grid")
EARLY_STOPPINGS = ("medianstop",)
COLLECTORS = ("StdOut", "File")
DEFAULT_PATH = "/var/log/katib/metrics.log"

_TEMPLATE = "spec.trialTemplate"
_CONDITIONS = {
    f"{name}Condition": f'status.conditions.#(type=="{kind}")#|#(status=="True")#'
    for name, kind in (("success", "Complete"), ("failure", "Failed"))
}
_NAME = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")  # matched at the start only, as Katib does: "a_b" passes here
_EDITABLE = ("parallelTrialCount", "maxTrialCount", "maxFailedTrialCount")


def admit_experiment(new: Object, old: Object | None, namespace: Object) -> Object:
    """Return a copy of the Experiment with Katib's defaults.

    Args:
        new: the Experiment as it shall be stored, its metadata complete (name, namespace).
        old: the stored one where this is an update; None for a create.
        namespace: the Namespace object in which it shall live.

    Raises:
        StatusError: 400, a webhook denies it; the message has every error with its field's path.
    """
    spec: dict[str, Any] = copied(new.get("spec") or {})
    name = new["metadata"]["name"]
    _fill_in(spec)
    errors = list(_errors(spec, old))
    if (namespace["metadata"].get("labels") or {}).get(INJECTION_LABEL) != "enabled":
        lacks = f'the namespace lacks label "{INJECTION_LABEL}: enabled"'
        raise StatusError.denied(f'Cannot create the Experiment "{name}" in namespace "{namespace["metadata"]["name"]}": {lacks}')
    if not _NAME.match(name) or len(name) > 40:
        rule = "name must consist of lower case alphanumeric characters or '-', start with an alphabetic character"
        errors.insert(0, _invalid("metadata.name", name, f"{rule}, and may not be longer than 40 characters. "))
    if errors:
        raise StatusError.denied(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return {**copied(new), "spec": spec}


def _fill_in(spec: dict[str, Any]) -> None:
    """Add Katib's defaults to a spec, in place. Every metric is ranked by its best report where no strategy is given."""
    spec.setdefault("parallelTrialCount", 3)
    spec.setdefault("resumePolicy", "Never")
    if "objective" in spec:
        objective = spec["objective"]
        best = {"minimize": "min", "maximize": "max"}.get(objective.get("type", ""), "latest")
        strategies: list[dict[str, Any]] = objective.get("metricStrategies", [])
        missing = [objective.get("objectiveMetricName", ""), *objective.get("additionalMetricNames", ())]
        missing = [name for name in missing if name not in {strategy.get("name") for strategy in strategies}]
        objective["metricStrategies"] = [*strategies, *({"name": name, "value": best} for name in missing)]
    if "trialTemplate" in spec:
        spec["trialTemplate"] = {**_CONDITIONS, **spec["trialTemplate"]}
    collector = spec.setdefault("metricsCollectorSpec", {}).setdefault("collector", {"kind": "StdOut"})
    if collector.get("kind") == "File":
        source = spec["metricsCollectorSpec"].setdefault("source", {})
        defaults = {"path": DEFAULT_PATH, "kind": "File", "format": "TEXT"}
        source["fileSystemPath"] = {**defaults, **source.get("fileSystemPath", {})}
    for parameter in spec.get("parameters", ()):
        parameter.setdefault("feasibleSpace", {}).setdefault("distribution", "uniform")


def _invalid(path: str, value: Any, why: str) -> str:
    """Say that a value breaks a rule, as the Kubernetes field validation words it."""
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"


def _errors(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[str]:
    if old is not None and spec != old["spec"]:
        before, trials = old["spec"], (old.get("status") or {}).get("trials", 0)
        if has_condition(old, "Succeeded", "Failed"):
            why = (
                "Experiment can be restarted if it is in succeeded state by reaching max trials and "
                "spec.resumePolicy = LongRunning or spec.resumePolicy = FromVolume, when experiment is completed"
            )
            yield _invalid("spec.resumePolicy", spec["resumePolicy"], why)
        if "maxTrialCount" in spec and spec["maxTrialCount"] <= trials:
            yield _invalid("spec.maxTrialCount", spec["maxTrialCount"], "must be greater than status.trials count")
        if spec["parallelTrialCount"] < before["parallelTrialCount"]:
            why = "the emulated Katib deletes no running trials, so it only raises the number of parallel ones"
            yield _invalid("spec.parallelTrialCount", spec["parallelTrialCount"], why)
        if {k: v for k, v in spec.items() if k not in _EDITABLE} != {k: v for k, v in before.items() if k not in _EDITABLE}:
            only = "only spec.parallelTrialCount, spec.maxTrialCount and spec.maxFailedTrialCount are editable"
            yield f"spec: Forbidden: {only}"
    objective = spec.get("objective") or {}
    if objective.get("type") not in ("minimize", "maximize"):
        yield _invalid("spec.objective.type", objective.get("type", ""), "must be minimize or maximize")
    if not objective.get("objectiveMetricName"):
        yield "spec.objective.objectiveMetricName: Required value: must be specified"
    for field, config, names in (("algorithm", "Suggestion", ALGORITHMS), ("earlyStopping", "EarlyStopping", EARLY_STOPPINGS)):
        name = spec.get(field, {}).get("algorithmName", "")
        if name not in names and (field == "algorithm" or field in spec):
            missing = f"failed to find {config.lower()} config for algorithm: {name} in ConfigMap: katib-config"
            why = f"unable to get {config} config data for algorithm {name}: {missing}"
            yield _invalid(f"spec.{field}.algorithmName", name, why)
    if spec["resumePolicy"] != "Never":
        yield _invalid("spec.resumePolicy", spec["resumePolicy"], "the emulated Katib restarts no experiment: use Never")
    if not spec.get("parameters"):
        yield "spec: Required value: spec.parameters or spec.nasConfig must be specified; the emulated Katib has no NAS"
    for index, parameter in enumerate(spec.get("parameters", ())):
        # Katib compares no numbers: min above max passes, and so does a log scale from 0
        path, kind, space = f"spec.parameters[{index}]", parameter.get("parameterType", ""), parameter["feasibleSpace"]
        if space["distribution"] not in ("uniform", "logUniform"):
            why = "the emulated Katib draws uniform and logUniform only"
            yield _invalid(f"{path}.feasibleSpace.distribution", space["distribution"], why)
        if kind not in ("int", "double", "categorical"):
            yield _invalid(f"{path}.parameterType", kind, f"parameterType: {kind} is not supported")
    path, collector = "spec.metricsCollectorSpec", spec["metricsCollectorSpec"]
    kind = collector["collector"].get("kind", "")
    if kind not in COLLECTORS:
        yield _invalid(f"{path}.collector.kind", kind, f"the emulated Katib has the collectors {' and '.join(COLLECTORS)} only")
    if kind == "File" and (wanted := collector["source"]["fileSystemPath"]["format"]) != "TEXT":
        yield _invalid(f"{path}.source.fileSystemPath.format", wanted, "the emulated Katib reads TEXT only")
    template = spec.get("trialTemplate") or {}
    absent = [name for name in ("primaryContainerName", "trialParameters", "trialSpec") if not template.get(name)]
    for name in absent:
        yield f"{_TEMPLATE}.{name}: Required value: must be specified"
    for name, expression in _CONDITIONS.items():
        if template.get(name) != expression:
            yield _invalid(f"{_TEMPLATE}.{name}", template.get(name), f"the emulated Katib understands {expression} only")
    if absent:
        return
    parameters = {TRIAL_NAME, *(parameter.get("name", "") for parameter in spec.get("parameters", ()))}
    for index, parameter in enumerate(template["trialParameters"]):
        path, reference = f"{_TEMPLATE}.trialParameters[{index}]", parameter.get("reference", "")
        if reference not in parameters:
            yield _invalid(f"{path}.reference", reference, f"parameter reference {reference} does not exist in spec.parameters")
    job = template["trialSpec"]
    if (job.get("apiVersion"), job.get("kind")) != ("batch/v1", "Job"):
        yield _invalid(_TEMPLATE, job.get("kind"), "the emulated Katib runs Jobs of batch/v1 only")
    elif any((job.get("spec") or {}).get(name, 1) != 1 for name in ("completions", "parallelism")):
        yield _invalid(_TEMPLATE, "", "the emulated Katib runs Jobs of one pod only")
