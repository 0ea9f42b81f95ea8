"""The rules of Katib's validating webhook on an Experiment's spec (validator.go of v0.19.0)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from katib_emulation.admission.katib_config import ALGORITHMS, COLLECTORS, EARLY_STOPPINGS, missing
from katib_emulation.admission.structs import Decoder, table

TEMPLATE = "spec.trialTemplate"
PLACEHOLDER = re.compile(r"\$\{trialParameters\..+?\}")
TRIAL_NAME = "${trialSpec.Name}"
"""The one reference to the trial itself that is understood."""


def invalid(path: str, value: Any, why: str) -> str:
    """Say that a value breaks a rule, as the Kubernetes field validation words it."""
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {why}"


def required(path: str, why: str = "must be specified") -> str:
    """Say that a field is missing or empty."""
    return f"{path}: Required value: {why}"


def check_spec(spec: Mapping[str, Any], conditions: Mapping[str, str]) -> list[str]:
    """Return what is wrong with a defaulted spec. After a wrong objective the rest is not looked at, as in Katib.

    `conditions`: the success and the failure condition of a template, by the names of their fields.
    """
    wrong = list(_objective(spec.get("objective") or {}))
    if wrong:
        return wrong
    services = (
        ("algorithm", "Suggestion", "algorithm", ALGORITHMS),
        ("earlyStopping", "EarlyStopping", "algorithm", EARLY_STOPPINGS),
    )
    for field, what, kind, known in services:
        name = spec.get(field, {}).get("algorithmName", "")
        if name not in known and (field == "algorithm" or field in spec):
            wrong.append(invalid(f"spec.{field}.algorithmName", name, missing(what, kind, name)))
    if spec["resumePolicy"] != "Never":
        wrong.append(invalid("spec.resumePolicy", spec["resumePolicy"], "the emulated Katib restarts no experiment: use Never"))
    wrong += _template(spec, conditions)
    if not spec.get("parameters"):
        wrong.append(required("spec", "spec.parameters or spec.nasConfig must be specified; the emulated Katib has no NAS"))
    for index, parameter in enumerate(spec.get("parameters", ())):
        wrong += _parameter(f"spec.parameters[{index}]", parameter)
    return [*wrong, *_collector(spec["metricsCollectorSpec"])]


def _objective(objective: Mapping[str, Any]) -> Iterator[str]:
    path = "spec.objective"
    if objective.get("type") not in ("minimize", "maximize"):
        yield invalid(f"{path}.type", objective.get("type", ""), "must be minimize or maximize")
    if not objective.get("objectiveMetricName"):
        yield required(f"{path}.objectiveMetricName")


def _parameter(path: str, parameter: Mapping[str, Any]) -> Iterator[str]:
    """Check one parameter. Katib compares no numbers: min above max passes, and so does a log scale from 0."""
    kind, space = parameter.get("parameterType", ""), parameter["feasibleSpace"]
    if space["distribution"] not in ("uniform", "logUniform"):
        why = "the emulated Katib draws uniform and logUniform only"
        yield invalid(f"{path}.feasibleSpace.distribution", space["distribution"], why)
    if kind in ("int", "double"):
        if space.get("list"):
            why = f"feasibleSpace.list is not supported for parameterType: {kind}"
            yield invalid(f"{path}.feasibleSpace.list", space["list"], why)
        if not space.get("max") or not space.get("min"):
            why = f"feasibleSpace.max or feasibleSpace.min must be specified for parameterType: {kind}"
            yield required(f"{path}.feasibleSpace.max", why)
    elif kind not in ("categorical", "discrete"):
        yield invalid(f"{path}.parameterType", kind, f"parameterType: {kind} is not supported")
    elif any(space.get(name) for name in ("max", "min", "step")):
        why = f"feasibleSpace .max, .min and .step is not supported for parameterType: {kind}"
        yield invalid(f"{path}.feasibleSpace", space, why)


def _collector(spec: Mapping[str, Any]) -> Iterator[str]:
    path, kind = "spec.metricsCollectorSpec", spec["collector"].get("kind", "")
    if kind not in COLLECTORS:
        yield invalid(f"{path}.collector.kind", kind, f"the emulated Katib has the collectors {' and '.join(COLLECTORS)} only")
    if kind != "File":
        return
    file = spec["source"]["fileSystemPath"]
    if file["kind"] != "File" or not file["path"].startswith("/"):
        yield required(f"{path}.source.fileSystemPath.path", "file path where metrics file exists is required")
    if file["format"] != "TEXT":
        yield invalid(f"{path}.source.fileSystemPath.format", file["format"], "the emulated Katib reads TEXT only")
    for pattern in (spec["source"].get("filter") or {}).get("metricsFormat", ()):
        if not re.search(r".*\(.*\).*\(.*\).*", pattern):
            yield invalid(f"{path}.source.filter.metricsFormat", pattern, "two top subexpressions are required")


def _template(spec: Mapping[str, Any], conditions: Mapping[str, str]) -> Iterator[str]:
    template = spec.get("trialTemplate") or {}
    for name in ("primaryContainerName", "trialParameters", "trialSpec"):
        if not template.get(name):
            yield required(f"{TEMPLATE}.{name}")
    for name, expression in conditions.items():
        if template.get(name) != expression:
            yield invalid(f"{TEMPLATE}.{name}", template.get(name), f"the emulated Katib understands {expression} only")
    if not template.get("trialParameters") or not template.get("trialSpec"):
        return
    text = json.dumps(template["trialSpec"], ensure_ascii=False)
    known = {TRIAL_NAME, *(parameter.get("name", "") for parameter in spec.get("parameters", ()))}
    for index, parameter in enumerate(template["trialParameters"]):
        path, name, reference = f"{TEMPLATE}.trialParameters[{index}]", parameter.get("name", ""), parameter.get("reference", "")
        if reference not in known:
            yield invalid(f"{path}.reference", reference, f"parameter reference {reference} does not exist in spec.parameters")
        placeholder = f"${{trialParameters.{name}}}"
        if placeholder not in text:
            yield invalid(f"{path}.name", name, f"parameter name: {name} in spec.trialParameters not found in {TEMPLATE}: {text}")
        text = text.replace(placeholder, "test-value")
    unknown = PLACEHOLDER.findall(text)
    if unknown:
        why = f"parameters: [{' '.join(unknown)}] in {TEMPLATE} not found in spec.trialParameters"
        yield invalid(TEMPLATE, "", why)
    yield from _run_spec(json.loads(text))


def _run_spec(job: Mapping[str, Any]) -> Iterator[str]:
    """Check that the template is a Job that survives the way through the typed structure."""
    metadata = job.get("metadata") or {}
    if metadata.get("name") or metadata.get("namespace"):
        yield invalid(TEMPLATE, "", f"metadata.name and metadata.namespace in {TEMPLATE} must be omitted")
    if (job.get("apiVersion"), job.get("kind")) != ("batch/v1", "Job"):
        yield invalid(TEMPLATE, job.get("kind"), "the emulated Katib runs Jobs of batch/v1 only")
        return
    if any((job.get("spec") or {}).get(name, 1) != 1 for name in ("completions", "parallelism")):
        yield invalid(TEMPLATE, "", "the emulated Katib runs Jobs of one pod only")
    decoder = Decoder(table("job_fields"))
    kept = decoder.read(job, "Job")
    for wrong in decoder.mismatches:
        why = f"unable to convert spec.TrialTemplate: {'.'.join(wrong.path)} to Job: cannot convert {wrong.got} to {wrong.wanted}"
        yield invalid(TEMPLATE, "", f"invalid {TEMPLATE}: {why}")
        return
    for lost in decoder.lost:
        path = "/" + "/".join(lost.path)
        if "/resources/limits/" not in path and "/resources/requests/" not in path:
            what = f"{path} - {json.dumps(lost.value, ensure_ascii=False)}"
            why = f"unable to convert: {what} to Job, converted template: {json.dumps(kept, ensure_ascii=False)}"
            yield invalid(TEMPLATE, "", f"invalid {TEMPLATE}: {why}")
            return
