"""The rules of Katib's validating webhook on the trial template."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from katib_emulation.admission.fields import FieldErrors
from katib_emulation.admission.structs import Decoder, table
from katib_emulation.conditions import CONDITION_EXPRESSION

PATH = "spec.trialTemplate"
PLACEHOLDER = re.compile(r"\$\{trialParameters\..+?\}")
META_REFERENCE = re.compile(r"\$\{trialSpec\.(.+?)\}")
META_KEYS = ("Name", "Namespace", "Kind", "APIVersion", "Annotations", "Labels")


def check_template(spec: Mapping[str, Any], errors: FieldErrors) -> None:
    """Add what is wrong with `spec.trialTemplate`; like Katib, stop where the rest cannot be judged."""
    template = spec.get("trialTemplate")
    if template is None:
        errors.required(PATH, "must be specified")
        return
    if not template.get("primaryContainerName"):
        errors.required(f"{PATH}.primaryContainerName", "must be specified")
    _check_conditions(template, errors)
    if not template.get("trialParameters"):
        errors.required(f"{PATH}.trialParameters", "must be specified")
        return
    if "configMap" in template:
        errors.invalid(PATH, "", "unable to parse spec.trialTemplate: the emulated Katib reads no ConfigMap; use trialSpec")
        return
    if "trialSpec" not in template:
        why = "spec.trialTemplate.trialSpec or spec.trialTemplate.configMap must be specified"
        errors.required(f"{PATH}.TrialSource", why)
        return
    text = _check_parameters(spec, template, errors)
    if text is not None:
        _check_run_spec(text, errors)


def _check_conditions(template: Mapping[str, Any], errors: FieldErrors) -> None:
    given = {name: template.get(name, "") for name in ("successCondition", "failureCondition")}
    if not all(given.values()):
        errors.required(PATH, "successCondition and failureCondition must be specified")
    for name, expression in given.items():
        if expression and not CONDITION_EXPRESSION.fullmatch(expression):
            why = 'the emulated Katib understands only the form status.conditions.#(type=="T")#|#(status=="S")#'
            errors.invalid(f"{PATH}.{name}", expression, why)


def _check_parameters(spec: Mapping[str, Any], template: Mapping[str, Any], errors: FieldErrors) -> str | None:
    """Check the trial parameters; return the template's text with all of them replaced, None if one is not used in it."""
    text = json.dumps(template["trialSpec"], ensure_ascii=False)
    known = {parameter.get("name", "") for parameter in spec.get("parameters", ())}
    listed = template["trialParameters"]
    names: set[str] = set()
    references: set[str] = set()
    for index, parameter in enumerate(listed):
        path = f"{PATH}.trialParameters[{index}]"
        name, reference = parameter.get("name", ""), parameter.get("reference", "")
        if not name or not reference or "{" in name or "}" in name:
            errors.invalid(path, "", "name and reference must be specified and name must not contain '{' or '}'")
            continue
        for kind, value, seen in (("name", name, names), ("reference", reference, references)):
            if value in seen:
                why = f"parameter {kind} {value} can't be duplicated in spec.trialTemplate.trialParameters: {json.dumps(listed)}"
                errors.invalid(f"{path}.{kind}", value, why)
                break
        else:
            names.add(name)
            references.add(reference)
            if known and not is_meta(reference) and reference not in known:
                why = f"parameter reference {reference} does not exist in spec.parameters: {json.dumps(spec.get('parameters'))}"
                errors.invalid(f"{path}.reference", reference, why)
            placeholder = f"${{trialParameters.{name}}}"
            if placeholder not in text:
                why = f"parameter name: {name} in spec.trialParameters not found in spec.trialTemplate: {text}"
                errors.invalid(f"{path}.name", name, why)
                return None
            text = text.replace(placeholder, "test-value")
    unknown = PLACEHOLDER.findall(text)
    if unknown:
        listing = f"[{' '.join(unknown)}]"
        why = f"parameters: {listing} in spec.trialTemplate not found in spec.trialParameters: {json.dumps(listed)}"
        errors.invalid(PATH, "", why)
    return text


def is_meta(reference: str) -> bool:
    """Whether a reference means the trial itself, as in ${trialSpec.Name} or ${trialSpec.Labels[x]}."""
    found = META_REFERENCE.search(reference)
    if found is None:
        return False
    key = found[1]
    indexed = re.search(r"(.+)\[(.+)\]", key)
    return key in META_KEYS or (indexed is not None and indexed[1] in META_KEYS)


def _check_run_spec(text: str, errors: FieldErrors) -> None:
    run_spec: dict[str, Any] = json.loads(text)
    metadata = run_spec.get("metadata") or {}
    if metadata.get("name") or metadata.get("namespace"):
        errors.invalid(PATH, "", "metadata.name and metadata.namespace in spec.trialTemplate must be omitted")
    if not run_spec.get("apiVersion") or not run_spec.get("kind"):
        errors.required(PATH, "APIVersion and Kind in spec.trialTemplate must be specified")
    if (run_spec.get("apiVersion"), run_spec.get("kind")) == ("batch/v1", "Job"):
        why = _why_no_job(run_spec)
        if why is not None:
            errors.invalid(PATH, "", f"invalid spec.trialTemplate: {why}")


def _why_no_job(run_spec: Mapping[str, Any]) -> str | None:
    """Return why the text is not a Job that survives the way through the typed structure, None if it is one."""
    decoder = Decoder(table("job_fields"))
    kept = decoder.read(run_spec, "Job")
    for wrong in decoder.mismatches:
        where = ".".join(wrong.path)
        return f"unable to convert spec.TrialTemplate: {where} to Job: cannot convert {wrong.got} to {wrong.wanted}"
    for lost in decoder.lost:
        path = "/" + "/".join(lost.path)
        if "/resources/limits/" not in path and "/resources/requests/" not in path:
            value = json.dumps(lost.value, ensure_ascii=False)
            return f"unable to convert: {path} - {value} to Job, converted template: {json.dumps(kept, ensure_ascii=False)}"
    return None
