"""The rules of Katib's validating webhook on an Experiment's spec (validator.go of v0.19.0), but for the trial template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from katib_emulation.admission.fields import FieldErrors
from katib_emulation.admission.katib_config import (
    ALGORITHMS,
    AUTO_INJECTED,
    COLLECTORS,
    EARLY_STOPPINGS,
    missing_algorithm,
    missing_collector,
    missing_early_stopping,
)
from katib_emulation.admission.trial_template import check_template

PARAMETER_TYPES = ("int", "double", "categorical", "discrete", "unknown")
DISTRIBUTIONS = ("uniform", "logUniform", "normal", "logNormal", "unknown")


def check_spec(spec: Mapping[str, Any], errors: FieldErrors) -> None:
    """Add what is wrong with a defaulted spec. After a wrong objective the rest is not looked at, as in Katib."""
    if not _check_objective(spec.get("objective"), errors):
        return
    _check_algorithm(spec.get("algorithm"), errors)
    _check_early_stopping(spec.get("earlyStopping"), errors)
    if spec.get("resumePolicy", "") not in ("", "Never", "LongRunning", "FromVolume"):
        errors.invalid("spec.resumePolicy", spec["resumePolicy"], "invalid ResumePolicyType")
    check_template(spec, errors)
    if "nasConfig" in spec:
        errors.forbidden("spec.nasConfig", "the emulated Katib has no NAS algorithms")
    elif not spec.get("parameters"):
        errors.required("spec", "spec.parameters or spec.nasConfig must be specified")
    for index, parameter in enumerate(spec.get("parameters", ())):
        _check_parameter(f"spec.parameters[{index}]", parameter, errors)
    _check_collector(spec["metricsCollectorSpec"], errors)


def _check_objective(objective: Mapping[str, Any] | None, errors: FieldErrors) -> bool:
    path = "spec.objective"
    if objective is None:
        errors.required(path, "must be specified")
        return False
    kind, name = objective.get("type", ""), objective.get("objectiveMetricName", "")
    additional = objective.get("additionalMetricNames", [])
    if kind not in ("minimize", "maximize"):
        errors.invalid(f"{path}.type", kind, "must be minimize or maximize")
    if not name:
        errors.required(f"{path}.objectiveMetricName", "must be specified")
    if name in additional:
        errors.invalid(f"{path}.additionalMetricNames", additional, "should not contain spec.objective.objectiveMetricName")
    return kind in ("minimize", "maximize") and bool(name) and name not in additional


def _check_algorithm(algorithm: Mapping[str, Any] | None, errors: FieldErrors) -> None:
    if algorithm is None:
        errors.required("spec.algorithm", "must be specified")
        return
    name = algorithm.get("algorithmName", "")
    if not name:
        errors.required("spec.algorithm.algorithmName", "must be specified")
    if name not in ALGORITHMS:
        errors.invalid("spec.algorithm.algorithmName", name, missing_algorithm(name))


def _check_early_stopping(early_stopping: Mapping[str, Any] | None, errors: FieldErrors) -> None:
    if early_stopping is None:
        return
    name = early_stopping.get("algorithmName", "")
    if not name:
        errors.required("spec.earlyStopping.algorithmName", "must be specified")
    if name not in EARLY_STOPPINGS:
        errors.invalid("spec.earlyStopping.algorithmName", name, missing_early_stopping(name))


def _check_parameter(path: str, parameter: Mapping[str, Any], errors: FieldErrors) -> None:
    """Check one parameter. Katib compares no numbers: min above max passes, and so does a log scale from 0."""
    kind, space = parameter.get("parameterType", ""), parameter["feasibleSpace"]
    if kind not in PARAMETER_TYPES:
        errors.invalid(f"{path}.parameterType", kind, f"parameterType: {kind} is not supported")
    if space["distribution"] not in DISTRIBUTIONS:
        why = f"distribution: {space['distribution']} is not supported"
        errors.invalid(f"{path}.feasibleSpace.distribution", space["distribution"], why)
    if kind in ("int", "double"):
        if space.get("list"):
            why = f"feasibleSpace.list is not supported for parameterType: {kind}"
            errors.invalid(f"{path}.feasibleSpace.list", space["list"], why)
        if not space.get("max") or not space.get("min"):
            why = f"feasibleSpace.max or feasibleSpace.min must be specified for parameterType: {kind}"
            errors.required(f"{path}.feasibleSpace.max", why)
    elif kind in ("categorical", "discrete") and any(space.get(name) for name in ("max", "min", "step")):
        why = f"feasibleSpace .max, .min and .step is not supported for parameterType: {kind}"
        errors.invalid(f"{path}.feasibleSpace", space, why)


def _check_collector(collector_spec: Mapping[str, Any], errors: FieldErrors) -> None:
    path = "spec.metricsCollectorSpec"
    kind, source = collector_spec["collector"].get("kind", ""), collector_spec.get("source") or {}
    if kind in AUTO_INJECTED and kind not in COLLECTORS:
        errors.invalid(f"{path}.collector.kind", kind, missing_collector(kind))
    elif kind == "Custom":
        errors.invalid(f"{path}.collector.kind", kind, "the emulated Katib runs no custom metrics collector")
    elif kind not in (*COLLECTORS, "Push"):
        errors.invalid(f"{path}.collector.kind", kind, f"invalid metrics collector kind: {kind}")
    if kind in ("Push", "StdOut"):
        return
    if kind == "File":
        _check_file(f"{path}.source", source, errors)
    _check_filter(f"{path}.source.filter.metricsFormat", (source.get("filter") or {}).get("metricsFormat", ()), errors)


def _check_file(path: str, source: Mapping[str, Any], errors: FieldErrors) -> None:
    file = source["fileSystemPath"]
    if file["kind"] != "File" or not file["path"].startswith("/"):
        errors.required(f"{path}.fileSystemPath.path", "file path where metrics file exists is required")
    if file["format"] not in ("TEXT", "JSON"):
        errors.required(f"{path}.fileSystemPath.format", "format of metrics file is required for metrics collector")
    if file["format"] == "JSON" and "filter" in source:
        errors.invalid(f"{path}.filter", "", "filter must be nil when format of metrics file is json")


def _check_filter(path: str, formats: Sequence[str], errors: FieldErrors) -> None:
    for pattern in formats:
        try:
            re.compile(pattern)
        except re.error as error:
            errors.invalid(path, pattern, f"invalid filter: error parsing regexp: {error}")
        else:
            if not re.search(r".*\(.*\).*\(.*\).*", pattern):
                errors.invalid(path, pattern, "two top subexpressions are required")
