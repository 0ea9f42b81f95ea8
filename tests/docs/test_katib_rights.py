"""The roles in deploy/ give what the adapter asks the cluster about, and nothing that would surprise who grants them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tuneoff_adapters.katib.checks import needed_rights
from tuneoff_adapters.katib.options import KatibOptions

ROLES = Path(__file__).parents[2] / "deploy" / "katib-rights.yaml"
OPTIONS = {"tuneoff-katib": KatibOptions(), "tuneoff-katib-in-namespace": KatibOptions(namespace="team")}
READ_ONLY = {"get", "list", "watch"}
Rights = set[tuple[str, str, str]]


def needed(role: str) -> Rights:
    return {
        (resource.group, f"{resource.plural}/{subresource}" if subresource else resource.plural, verb)
        for resource, subresource, verbs in needed_rights(OPTIONS[role])
        for verb in verbs
    }


def given(rules: Iterable[Mapping[str, Any]]) -> Rights:
    """Return (group, resource, verb) of every right that the rules give."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rules(role: str) -> list[dict[str, Any]]:
    (found,) = [item for item in yaml.safe_load_all(ROLES.read_text()) if item["metadata"]["name"] == role]
    assert found["kind"] == "ClusterRole"
    rules: list[dict[str, Any]] = found["rules"]
    return rules


@pytest.mark.parametrize("role", OPTIONS)
def test_the_role_gives_all_that_the_adapter_needs(role: str) -> None:
    assert given(rules(role)) >= needed(role)


@pytest.mark.parametrize("role", OPTIONS)
def test_beyond_that_it_only_lets_read_and_has_no_wildcard_and_no_secrets(role: str) -> None:
    rights = given(rules(role))
    assert {verb for _, _, verb in rights - needed(role)} <= READ_ONLY
    assert not any("*" in part for right in rights for part in right)
    assert not any(resource.startswith("secrets") for _, resource, _ in rights)


def test_in_a_given_namespace_the_namespace_itself_is_only_read() -> None:
    assert {verb for _, resource, verb in given(rules("tuneoff-katib-in-namespace")) if resource == "namespaces"} <= READ_ONLY


@pytest.mark.parametrize("role", OPTIONS)
def test_a_missing_right_would_be_seen(role: str) -> None:
    """Control: without its rule on experiments the role lacks them."""
    less = [rule for rule in rules(role) if rule["resources"] != ["experiments"]]
    assert ("kubeflow.org", "experiments", "create") in needed(role) - given(less)
