"""The fields of `fields.json` against the models of the official clients: none is unknown to those."""

from __future__ import annotations

from typing import Any

import pytest

from katib_emulation.admission import Decoder, known_fields


def invented_fields(models: Any, prefix: str, fields: Any, root: str) -> list[str]:
    """Return the fields that a client's models lack, following the structures from `root`."""
    invented: list[str] = []
    todo, seen = [root], set()
    while todo:
        name = todo.pop()
        if name in seen or name not in fields:
            continue
        seen.add(name)
        known = getattr(models, prefix + name).attribute_map.values()
        invented += [f"{name}.{field}" for field in fields[name] if field not in known]
        todo += [kind.strip("*[]{}?") for kind in fields[name].values()]
    assert len(seen) > 5
    return invented


def test_every_field_of_a_job_is_one_of_the_client() -> None:
    models = pytest.importorskip("kubernetes.client.models")
    assert invented_fields(models, "V1", known_fields(), "Job") == []


def test_every_field_of_the_experiment_is_one_of_the_sdk_and_none_of_those_is_missing() -> None:
    models = pytest.importorskip("kubeflow.katib.models")
    assert invented_fields(models, "V1beta1", known_fields(), "ExperimentSpec") == []
    structs = [name for name in known_fields() if name != "Experiment" and hasattr(models, f"V1beta1{name}")]
    for name in structs:
        assert set(getattr(models, f"V1beta1{name}").attribute_map.values()) == set(known_fields()[name]), name
    assert "TrialTemplate" in structs


def test_an_invented_field_is_seen() -> None:
    models = pytest.importorskip("kubernetes.client.models")
    fields = {**known_fields(), "Container": {"workingFolder": "string?"}}
    assert invented_fields(models, "V1", fields, "Job") == ["Container.workingFolder"]


def test_every_type_in_the_tables_exists() -> None:
    primitives = {"string", "time", "bool", "int32", "int64", "float64", "object", "any", "quantity"}
    used = {kind.strip("*[]{}?") for fields in known_fields().values() for kind in fields.values()}
    assert used <= primitives | set(known_fields())


def test_what_is_read_is_what_go_would_write() -> None:
    kept = Decoder().read(
        {"spec": {"maxFailedTrialCount": 0, "resumePolicy": "", "trialTemplate": {"retain": False}}}, "Experiment"
    )
    assert kept == {"spec": {"maxFailedTrialCount": 0, "trialTemplate": {}}}
