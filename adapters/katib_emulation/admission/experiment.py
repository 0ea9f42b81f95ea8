"""Both webhooks of Experiments, one after the other, and the rules on what an update may change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from katib_emulation.admission.defaults import fill_in
from katib_emulation.admission.fields import FieldErrors
from katib_emulation.admission.rules import check_spec
from katib_emulation.admission.structs import Decoder, table
from katib_emulation.objects import copied
from katib_emulation.statuses import denied

DEFAULTER = "defaulter.experiment.katib.kubeflow.org"
"""The webhook that denies an object whose fields have wrong types."""

INJECTION_LABEL = "katib.kubeflow.org/metrics-collector-injection"

_NAME = re.compile("[a-z]([-a-z0-9]*[a-z0-9])?")  # matched at the start only, as Katib does: "a_b" passes here
_NAME_TEXT = (
    "name must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name', or 'abc-123', "
    "regex used for validation is '^[a-z]([-a-z0-9]*[a-z0-9])?)') and may not be longer than 40 characters. "
)


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
    fill_in(spec)
    name = new["metadata"].get("name") or ""
    if (namespace["metadata"].get("labels") or {}).get(INJECTION_LABEL) != "enabled":
        where = namespace["metadata"]["name"]
        lacks = f'the namespace lacks label "{INJECTION_LABEL}: enabled"'
        raise denied(f'Cannot create the Experiment "{name}" in namespace "{where}": {lacks}')
    errors = FieldErrors()
    _check_name(name, errors)
    _check_budget(spec, errors)
    if old is not None:
        _check_update(spec, old, errors)
    check_spec(spec, errors)
    if errors:
        raise denied(errors.text())
    return {**copied(dict(new)), "spec": spec}


def _check_name(name: str, errors: FieldErrors) -> None:
    if not _NAME.match(name) or len(name) > 40:
        errors.invalid("metadata.name", name, _NAME_TEXT)


def _check_budget(spec: Mapping[str, Any], errors: FieldErrors) -> None:
    failed, most, parallel = (spec.get(name) for name in ("maxFailedTrialCount", "maxTrialCount", "parallelTrialCount"))
    if failed is not None and failed < 0:
        errors.invalid("spec.maxFailedTrialCount", failed, "should not be less than 0")
    if most is not None and most <= 0:
        errors.invalid("spec.maxTrialCount", most, "must be greater than 0")
    if parallel is not None and parallel <= 0:
        errors.invalid("spec.parallelTrialCount", parallel, "must be greater than 0")
    if most is not None:
        for name, value in (("maxFailedTrialCount", failed), ("parallelTrialCount", parallel)):
            if value is not None and value > most:
                errors.invalid(f"spec.{name}", value, "should be less than or equal to spec.maxTrialCount")


def is_restartable(experiment: Mapping[str, Any]) -> bool:
    """Whether a completed Experiment goes on when its maxTrialCount is raised."""
    reached = any(
        condition.get("type") == "Succeeded"
        and condition.get("status") == "True"
        and condition.get("reason") == "ExperimentMaxTrialsReached"
        for condition in (experiment.get("status") or {}).get("conditions") or ()
    )
    return reached and experiment["spec"].get("resumePolicy") in ("LongRunning", "FromVolume")


def _check_update(spec: Mapping[str, Any], old: Mapping[str, Any], errors: FieldErrors) -> None:
    before, status = old["spec"], old.get("status") or {}
    if spec == before:
        return
    conditions = status.get("conditions") or ()
    if any(c.get("type") in ("Succeeded", "Failed") and c.get("status") == "True" for c in conditions) and not is_restartable(
        old
    ):
        errors.invalid(
            "spec.resumePolicy",
            spec.get("resumePolicy"),
            "Experiment can be restarted if it is in succeeded state by reaching max trials and "
            "spec.resumePolicy = LongRunning or spec.resumePolicy = FromVolume, when experiment is completed",
        )
    most = spec.get("maxTrialCount")
    if most is not None and most <= status.get("trials", 0):
        errors.invalid("spec.maxTrialCount", most, "must be greater than status.trials count")
    editable = ("parallelTrialCount", "maxTrialCount", "maxFailedTrialCount")
    if {k: v for k, v in spec.items() if k not in editable} != {k: v for k, v in before.items() if k not in editable}:
        errors.forbidden("spec", "only spec.parallelTrialCount, spec.maxTrialCount and spec.maxFailedTrialCount are editable")
