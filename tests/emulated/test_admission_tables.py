"""The tables of fields against the models of the official clients: every field that those know is known."""

from __future__ import annotations

from typing import Any

import pytest

from katib_emulation.admission.structs import Decoder, table


def unknown_fields(models: Any, prefix: str, known: Any, root: str) -> list[str]:
    """Return the fields of a client's models that the table lacks, following the structures from `root`."""
    lacking: list[str] = []
    todo, seen = [root], set()
    while todo:
        name = todo.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        model = getattr(models, prefix + name, None)
        if model is not None:
            lacking += [f"{name}.{field}" for field in model.attribute_map.values() if field not in known[name]]
        todo += [kind.strip("*[]{}?") for kind in known[name].values()]
    assert len(seen) > 5
    return lacking


def test_every_field_of_the_clients_job_is_known() -> None:
    models = pytest.importorskip("kubernetes.client.models")
    lacking = unknown_fields(models, "V1", table("job_fields"), "Job")
    newer = [
        "PodCertificateProjection.userAnnotations",
        "PodSpec.workloadRef",
    ]  # Kubernetes 1.35; Katib v0.19.0 is built with 1.34
    assert [field for field in lacking if field not in newer] == []


def test_every_field_of_the_sdks_experiment_is_known() -> None:
    models = pytest.importorskip("kubeflow.katib.models")
    lacking = unknown_fields(models, "V1beta1", table("experiment_fields"), "ExperimentSpec")
    assert lacking == []


def test_a_field_missing_in_the_table_is_found() -> None:
    models = pytest.importorskip("kubernetes.client.models")
    known = {name: dict(fields) for name, fields in table("job_fields").items()}
    del known["Container"]["workingDir"]
    assert "Container.workingDir" in unknown_fields(models, "V1", known, "Job")


def test_every_type_in_the_tables_exists() -> None:
    primitives = {"string", "time", "bool", "int32", "int64", "float64", "object", "any", "quantity"}
    for name in ("job_fields", "experiment_fields"):
        known = table(name)
        used = {kind.strip("*[]{}?") for fields in known.values() for kind in fields.values()}
        assert used <= primitives | set(known)


def test_what_is_read_is_what_go_would_write() -> None:
    decoder = Decoder(table("experiment_fields"))
    kept = decoder.read(
        {"spec": {"maxFailedTrialCount": 0, "resumePolicy": "", "trialTemplate": {"retain": False}}}, "Experiment"
    )
    assert kept == {"spec": {"maxFailedTrialCount": 0, "trialTemplate": {}}}
