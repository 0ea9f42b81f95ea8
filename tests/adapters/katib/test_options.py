"""The adapter's options: each mistake is one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders.katib_specs import spec_of
from tuneoff.errors import ExperimentError
from tuneoff_adapters.katib.adapter import KatibAdapter
from tuneoff_adapters.katib.options import katib_options

IMAGE = {"image": "registry.example/tuneoff@sha256:0123"}


def test_every_option_arrives() -> None:
    given = {
        **IMAGE,
        "kubeconfig": "~/cluster.yaml",
        "context": "kind-tuneoff",
        "katib_namespace": "katib",
        "namespace": "team-a",
        "image_pull_secret": "registry-key",
        "service_account": "trials",
        "data_claim": "mnist",
        "node_selector": {"node.kubernetes.io/instance-type": "c5.large", "pool": ""},
        "api_seconds": 5,
        "pending_seconds": 7.5,
    }
    options = katib_options(spec_of(options=given))
    assert options.kubeconfig == Path("~/cluster.yaml").expanduser()
    assert options.api_seconds == 5.0
    others = {name: value for name, value in given.items() if name not in ("kubeconfig", "api_seconds")}
    assert {name: getattr(options, name) for name in others} == others


@pytest.mark.parametrize("name", ["image_pull_secret", "service_account", "data_claim"])
def test_what_must_be_there_before_needs_a_namespace_that_is_there(name: str) -> None:
    with pytest.raises(ExperimentError, match=f"option {name} must name something .* give option `namespace` too") as caught:
        katib_options(spec_of(options={**IMAGE, name: "x"}))
    assert "\n" not in str(caught.value)
    assert katib_options(spec_of(options={**IMAGE, name: "x", "namespace": "team"})).namespace == "team"


def test_emulated_takes_only_the_times() -> None:
    assert katib_options(spec_of(platform="emulated", options={"api_seconds": 3})).api_seconds == 3.0
    with pytest.raises(ExperimentError, match="option image, kubeconfig, namespace has no meaning there"):
        katib_options(spec_of(platform="emulated", options={**IMAGE, "kubeconfig": "x", "namespace": "team"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_seconds", 0),
        ("api_seconds", True),
        ("api_seconds", "60"),
        ("pending_seconds", float("inf")),
        ("pending_seconds", float("nan")),
        ("image", ""),
        ("image", "two words"),
        ("image", 3),
        ("context", " x"),
        ("kubeconfig", "a\nb"),
        ("katib_namespace", "Kubeflow"),
        ("namespace", "a.b"),
        ("namespace", "a" * 64),
        ("namespace", "-a"),
        ("image_pull_secret", "-x"),
        ("image_pull_secret", {"password": "never here"}),
        ("service_account", "a/b"),
        ("data_claim", "a" * 254),
        ("node_selector", "pool=a"),
        ("node_selector", {"pool": 1}),
        ("node_selector", {"pool": True}),
        ("node_selector", {"": "a"}),
        ("node_selector", {"a b": "a"}),
        ("node_selector", {"pool": "a b"}),
        ("node_selector", {"pool": "a" * 64}),
    ],
)
def test_wrong_value_is_named_in_one_line(name: str, value: Any) -> None:
    with pytest.raises(ExperimentError, match=f"option `{name}`") as caught:
        katib_options(spec_of(options={**IMAGE, name: value}))
    assert "\n" not in str(caught.value)


def test_the_way_to_the_cluster_and_the_patience_are_no_part_of_the_run() -> None:
    def run_id(**options: Any) -> str:
        given = {"image": "any.example/tuneoff:1", **options}
        return replace(spec_of(options=given), local_options=tuple(KatibAdapter.local_options)).run_id

    local = {"kubeconfig": "/a/config", "context": "c", "api_seconds": 1.0, "pending_seconds": 2.0}
    assert set(local) == KatibAdapter.local_options
    assert run_id(**local) == run_id()
    for name, value in {"image": "other.example/tuneoff:1", "namespace": "team", "node_selector": {"pool": "a"}}.items():
        assert run_id(**{name: value}) != run_id()
