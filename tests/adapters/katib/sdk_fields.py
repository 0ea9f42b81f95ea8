"""Which fields of an Experiment the SDK's own models do not know; the real API server keeps such fields without a word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_LIST = re.compile(r"list\[(.+)\]")
_MAP = re.compile(r"dict[(\[]str, (.+)[)\]]")


def unknown_fields(experiment: Any) -> list[str]:
    """Return the paths of an Experiment that the models of kubeflow.katib and, in its trial template, of kubernetes lack,
    and of those with a value of another kind (an object where the model has a text) or an empty text, which Katib loses."""
    return list(_unknown(experiment, "V1beta1Experiment", ""))


def _unknown(value: Any, type_name: str, path: str) -> Iterator[str]:
    if found := _LIST.fullmatch(type_name):
        if not isinstance(value, list):
            yield path
            return
        for index, item in enumerate(value):
            yield from _unknown(item, found[1], f"{path}[{index}]")
    elif found := _MAP.fullmatch(type_name):
        if not isinstance(value, dict):
            yield path
            return
        for key, item in value.items():
            yield from _unknown(item, found[1], f"{path}.{key}")
    elif (model := _model(type_name)) is not None:
        if not isinstance(value, dict):
            yield path
            return
        types = {json_name: model.openapi_types[name] for name, json_name in model.attribute_map.items()}
        for key, item in value.items():
            where = f"{path}.{key}".lstrip(".")
            if key not in types:
                yield where
            else:
                is_template = type_name == "V1beta1TrialTemplate" and key == "trialSpec"
                yield from _unknown(item, "V1Job" if is_template else types[key], where)
    elif value == "" or not isinstance(value, {"str": str, "int": int, "bool": bool, "float": float}.get(type_name, object)):
        yield path


def _model(type_name: str) -> Any:
    """Return the class of a model; None for a plain type."""
    import kubernetes.client
    from kubeflow.katib import models

    return getattr(models, type_name, None) or getattr(kubernetes.client, type_name, None)
