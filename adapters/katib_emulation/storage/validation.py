"""What the API server refuses of every object, whoever sends it. Katib's own rules are in admission.py."""

from __future__ import annotations

import re
from typing import Any

from katib_emulation.kinds import CONFIG_MAPS, JOBS, NAMESPACES, PODS, Kind
from katib_emulation.objects import Object
from katib_emulation.statuses import bad_request, invalid

MAX_CONFIG_MAP_BYTES = 1_048_576

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def check(kind: Kind, obj: Object) -> None:
    """Check name, labels and the parts of jobs, pods and config maps that others rely on.

    Raises:
        ApiError: 422, or 400 for a wrong type.
    """
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    causes = [*_name_causes(kind, name), *_label_causes(metadata.get("labels"), "metadata.labels")]
    if kind is JOBS:
        causes += _template_causes(obj)
    if kind is PODS:
        causes += _container_causes(obj.get("spec"), "spec")
    if causes:
        raise invalid(kind, name, causes)
    if kind is CONFIG_MAPS:
        _check_config_map(obj, name)


def _name_causes(kind: Kind, name: str) -> list[tuple[str, str]]:
    if not name:
        return [("metadata.name", "Required value: name or generateName is required")]
    longest = 63 if kind is NAMESPACES else 253
    if len(name) > longest:
        return [("metadata.name", f'Invalid value: "{name}": must be no more than {longest} bytes')]
    pattern, text = (LABEL, _LABEL_TEXT) if kind is NAMESPACES else (SUBDOMAIN, _SUBDOMAIN_TEXT)
    if kind.group.startswith("rbac.") or re.fullmatch(pattern, name):
        return []
    return [("metadata.name", f'Invalid value: "{name}": {text}')]


def _label_causes(labels: Any, field: str) -> list[tuple[str, str]]:
    causes: list[tuple[str, str]] = []
    for value in (labels or {}).values():
        if not isinstance(value, str):
            raise bad_request(
                f"json: cannot unmarshal {type(value).__name__} into Go struct field ObjectMeta.metadata.labels of type string"
            )
        if len(value) > 63:
            causes.append((field, f'Invalid value: "{value}": must be no more than 63 bytes'))
        elif not re.fullmatch(VALUE, value):
            causes.append((field, f'Invalid value: "{value}": {_VALUE_TEXT}'))
    return causes


def _template_causes(job: Object) -> list[tuple[str, str]]:
    template = (job.get("spec") or {}).get("template") or {}
    field = "spec.template.spec"
    causes = _container_causes(template.get("spec"), field)
    policy = (template.get("spec") or {}).get("restartPolicy")
    supported = 'valid values: "OnFailure", "Never"'
    if not policy:
        causes.append((f"{field}.restartPolicy", f"Required value: {supported}"))
    elif policy not in ("OnFailure", "Never"):
        causes.append((f"{field}.restartPolicy", f'Unsupported value: "{policy}": supported values: "OnFailure", "Never"'))
    return causes


def _container_causes(spec: Any, field: str) -> list[tuple[str, str]]:
    containers = (spec or {}).get("containers")
    if not containers:
        return [(f"{field}.containers", "Required value")]
    causes: list[tuple[str, str]] = []
    for index, container in enumerate(containers):
        for part in ("name", "image"):
            if not container.get(part):
                causes.append((f"{field}.containers[{index}].{part}", "Required value"))
    return causes


def _check_config_map(obj: Object, name: str) -> None:
    data = obj.get("data") or {}
    for key, value in data.items():
        if not isinstance(value, str):
            raise bad_request(
                'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal '
                f"{type(value).__name__} into Go struct field ConfigMap.data.{key} of type string"
            )
    if sum(len(value.encode()) for value in data.values()) > MAX_CONFIG_MAP_BYTES:
        raise invalid(
            CONFIG_MAPS, name, [("[]", f"Too long: may not be more than {MAX_CONFIG_MAP_BYTES} bytes")], "FieldValueTooLong"
        )
