"""From an Experiment's template and a suggested configuration to a Trial."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from katib_emulation.admission.trial_template import META_REFERENCE
from katib_emulation.controllers.reconciling import ReconcileError
from katib_emulation.controllers.view import EXPERIMENT_LABEL, owned_by
from katib_emulation.objects import Object, copied

_INDEXED = re.compile(r"(.+)\[(.+)\]")


def trial_labels(experiment: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of an Experiment's Trials."""
    metadata = experiment["metadata"]
    return {**(metadata.get("labels") or {}), EXPERIMENT_LABEL: metadata["name"]}


def new_trial(experiment: Mapping[str, Any], suggestion: Mapping[str, Any]) -> Object:
    """Return the Trial for one entry of a Suggestion's status.

    Raises:
        ReconcileError: the template cannot be filled.
    """
    spec, template = experiment["spec"], experiment["spec"]["trialTemplate"]
    name, namespace = suggestion["name"], experiment["metadata"]["namespace"]
    assignments = suggestion.get("parameterAssignments", [])
    trial_spec = {
        "objective": spec["objective"],
        "parameterAssignments": assignments,
        "earlyStoppingRules": suggestion.get("earlyStoppingRules") if "earlyStopping" in spec else None,
        "runSpec": run_spec(template, name, namespace, {given["name"]: given["value"] for given in assignments}),
        "retainRun": template.get("retain"),
        "metricsCollector": spec["metricsCollectorSpec"],
        "primaryPodLabels": template.get("primaryPodLabels"),
        "primaryContainerName": template.get("primaryContainerName"),
        "successCondition": template.get("successCondition"),
        "failureCondition": template.get("failureCondition"),
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**trial_labels(experiment), **suggestion.get("labels", {})},
            "ownerReferences": owned_by(experiment),
        },
        "spec": copied({key: value for key, value in trial_spec.items() if value}),
    }


def run_spec(template: Mapping[str, Any], name: str, namespace: str, assignments: Mapping[str, str]) -> dict[str, Any]:
    """Return the trial's Job: the template with each `${trialParameters.X}` replaced by plain text in its JSON.

    Raises:
        ReconcileError: a parameter is missing in the configuration or in the template, or a value breaks the JSON.
    """
    source = template["trialSpec"]
    text = json.dumps(source, ensure_ascii=False)
    used = 0
    values: dict[str, str] = {}
    for parameter in template["trialParameters"]:
        reference = parameter["reference"]
        meta = META_REFERENCE.search(reference)
        if meta is not None:
            values[parameter["name"]] = _about_trial(source, meta[1], reference, name, namespace)
        elif reference in assignments:
            values[parameter["name"]] = assignments[reference]
            used += 1
        else:
            raise ReconcileError(
                "unable to find non-meta parameter from TrialParameters in ParameterAssignment: "
                f"parameter: {reference}, parameter assignment: {json.dumps(assignments)}"
            )
    if used != len(assignments):
        raise ReconcileError(
            "unable to find parameter from ParameterAssignment in TrialParameters: "
            f"parameter assignments: {json.dumps(assignments)}, non-meta trial parameter count: {used}"
        )
    for parameter_name, value in values.items():
        text = text.replace(f"${{trialParameters.{parameter_name}}}", value)
    try:
        rendered: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise ReconcileError(f"failed to convert string to unstructured: {error}") from error
    rendered["metadata"] = {**(rendered.get("metadata") or {}), "name": name, "namespace": namespace}
    return rendered


def _about_trial(source: Mapping[str, Any], key: str, reference: str, name: str, namespace: str) -> str:
    simple = {"Name": name, "Namespace": namespace, "Kind": source.get("kind"), "APIVersion": source.get("apiVersion")}
    if simple.get(key):
        return str(simple[key])
    indexed = _INDEXED.fullmatch(key)
    if indexed is not None and indexed[1] in ("Labels", "Annotations"):
        given = (source.get("metadata") or {}).get(indexed[1].lower()) or {}
        if indexed[2] in given:
            return str(given[indexed[2]])
        what = indexed[1].removesuffix("s")
        raise ReconcileError(f"illegal reference of trial metadata: {reference}; failed to fetch {what}: {indexed[2]}")
    raise ReconcileError(f"illegal reference of trial metadata: {reference}")
