"""What Katib's webhooks do with an Experiment before it is stored: decode it, fill in defaults, check it (Katib v0.19.0).

The real CRDs have no schema: whatever these rules do not refuse is stored. Differences to Katib, all of them stricter, because
nothing here could run it: refused are a trial template in a ConfigMap or of another kind than Job, success and failure conditions
of its own, collectors but StdOut and text in a File, NAS, normal distributions, resume policies, references to a trial's other
data than its name, fewer parallel trials than before, and all but the algorithms random, grid and multivariate-tpe and the early
stopping medianstop. Whatever the emulation alone refuses has "the emulated Katib" in its text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from katib_emulation.admission.rules import check_spec, invalid
from katib_emulation.admission.structs import Decoder, table
from katib_emulation.objects import copied, has_condition
from katib_emulation.statuses import denied

DEFAULTER = "defaulter.experiment.katib.kubeflow.org"
"""The webhook that denies an object whose fields have wrong types."""

INJECTION_LABEL = "katib.kubeflow.org/metrics-collector-injection"

SUCCESS_CONDITION = 'status.conditions.#(type=="Complete")#|#(status=="True")#'
FAILURE_CONDITION = 'status.conditions.#(type=="Failed")#|#(status=="True")#'

_NAME = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")  # matched at the start only, as Katib does: "a_b" passes here
_NAME_TEXT = (
    "name must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name', or 'abc-123', "
    "regex used for validation is '^[a-z]([-a-z0-9]*[a-z0-9])?)') and may not be longer than 40 characters. "
)
_EDITABLE = ("parallelTrialCount", "maxTrialCount", "maxFailedTrialCount")


def admit_experiment(new: Mapping[str, Any], old: Mapping[str, Any] | None, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the Experiment with Katib's defaults, without the fields that Katib does not know.

    Args:
        new: the Experiment as it shall be stored, its metadata complete (name, namespace).
        old: the stored one where this is an update; None for a create.
        namespace: the Namespace object in which it shall live.

    Raises:
        ApiError: 400, a webhook denies it; the message has every error with its field's path.
    """
    decoder = Decoder(table("experiment_fields"))
    decoded = decoder.read({"spec": new.get("spec") or {}}, "Experiment")
    if decoder.mismatches:
        wrong = decoder.mismatches[0]
        field = f"{wrong.struct}.{'.'.join(wrong.path)}"
        raise denied(f"json: cannot unmarshal {wrong.got} into Go struct field {field} of type {wrong.wanted}", DEFAULTER)
    spec: dict[str, Any] = copied(decoded["spec"])
    _fill_in(spec)
    name = new["metadata"].get("name") or ""
    if (namespace["metadata"].get("labels") or {}).get(INJECTION_LABEL) != "enabled":
        where = namespace["metadata"]["name"]
        lacks = f'the namespace lacks label "{INJECTION_LABEL}: enabled"'
        raise denied(f'Cannot create the Experiment "{name}" in namespace "{where}": {lacks}')
    errors = []
    if not _NAME.match(name) or len(name) > 40:
        errors.append(invalid("metadata.name", name, _NAME_TEXT))
    errors += _budget_errors(spec)
    if old is not None and spec != old["spec"]:
        errors += _edit_errors(spec, old)
    errors += check_spec(spec, {"successCondition": SUCCESS_CONDITION, "failureCondition": FAILURE_CONDITION})
    if errors:
        raise denied(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return {**copied(dict(new)), "spec": spec}


def _fill_in(spec: dict[str, Any]) -> None:
    """Add Katib's defaults to a decoded spec, in place."""
    spec.setdefault("parallelTrialCount", 3)
    spec.setdefault("resumePolicy", "Never")
    if "objective" in spec:
        _fill_strategies(spec["objective"])
    if "trialTemplate" in spec:
        spec["trialTemplate"].setdefault("successCondition", SUCCESS_CONDITION)
        spec["trialTemplate"].setdefault("failureCondition", FAILURE_CONDITION)
    collector = spec.setdefault("metricsCollectorSpec", {}).setdefault("collector", {"kind": "StdOut"})
    if collector.get("kind") == "File":
        file = spec["metricsCollectorSpec"].setdefault("source", {}).setdefault("fileSystemPath", {})
        for name, value in (("path", "/var/log/katib/metrics.log"), ("kind", "File"), ("format", "TEXT")):
            file.setdefault(name, value)
    for parameter in spec.get("parameters", ()):
        parameter.setdefault("feasibleSpace", {}).setdefault("distribution", "uniform")


def _fill_strategies(objective: dict[str, Any]) -> None:
    """Rank every metric, the additional ones too, by its best report, where no strategy is given."""
    best = {"minimize": "min", "maximize": "max"}.get(objective.get("type", ""), "latest")
    given: list[dict[str, Any]] = objective.get("metricStrategies", [])
    named = {strategy.get("name") for strategy in given}
    wanted = [objective.get("objectiveMetricName", ""), *objective.get("additionalMetricNames", ())]
    objective["metricStrategies"] = [*given, *({"name": name, "value": best} for name in wanted if name not in named)]


def _budget_errors(spec: Mapping[str, Any]) -> list[str]:
    failed, most, parallel = (spec.get(name) for name in ("maxFailedTrialCount", "maxTrialCount", "parallelTrialCount"))
    errors = []
    if failed is not None and failed < 0:
        errors.append(invalid("spec.maxFailedTrialCount", failed, "should not be less than 0"))
    for name, value in (("maxTrialCount", most), ("parallelTrialCount", parallel)):
        if value is not None and value <= 0:
            errors.append(invalid(f"spec.{name}", value, "must be greater than 0"))
    for name, value in (("maxFailedTrialCount", failed), ("parallelTrialCount", parallel)):
        if most is not None and value is not None and value > most:
            errors.append(invalid(f"spec.{name}", value, "should be less than or equal to spec.maxTrialCount"))
    return errors


def _edit_errors(spec: Mapping[str, Any], old: Mapping[str, Any]) -> list[str]:
    before, trials = old["spec"], (old.get("status") or {}).get("trials", 0)
    errors = []
    if has_condition(old, "Succeeded", "Failed"):
        why = (
            "Experiment can be restarted if it is in succeeded state by reaching max trials and "
            "spec.resumePolicy = LongRunning or spec.resumePolicy = FromVolume, when experiment is completed"
        )
        errors.append(invalid("spec.resumePolicy", spec["resumePolicy"], why))
    if "maxTrialCount" in spec and spec["maxTrialCount"] <= trials:
        errors.append(invalid("spec.maxTrialCount", spec["maxTrialCount"], "must be greater than status.trials count"))
    if spec["parallelTrialCount"] < before["parallelTrialCount"]:
        why = "the emulated Katib deletes no running trials, so it only raises the number of parallel ones"
        errors.append(invalid("spec.parallelTrialCount", spec["parallelTrialCount"], why))
    if {k: v for k, v in spec.items() if k not in _EDITABLE} != {k: v for k, v in before.items() if k not in _EDITABLE}:
        only = "only spec.parallelTrialCount, spec.maxTrialCount and spec.maxFailedTrialCount are editable"
        errors.append(f"spec: Forbidden: {only}")
    return errors
