"""The roles in deploy/ give what the adapter asks the cluster about, and nothing that would surprise who grants them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.katib.katib_rights import ELSEWHERE, GIVEN, OWN, Rights, needed, optional
from tuneoff_adapters.kubernetes.pool import POOL_RIGHTS

ROLES = Path(__file__).parents[2] / "deploy" / "katib-rights.yaml"
OPTIONS = {"tuneoff-katib": OWN, "tuneoff-katib-in-namespace": GIVEN}
READ_ONLY = {"get", "list", "watch"}


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
def test_the_role_gives_what_the_adapter_uses_and_no_more(role: str) -> None:
    everything = needed(OPTIONS[role], is_listed=True) | optional(OPTIONS[role])
    assert given(rules(role)) == (everything if OPTIONS[role] is OWN else everything - ELSEWHERE)


@pytest.mark.parametrize("role", OPTIONS)
def test_beyond_that_it_only_lets_read_and_has_no_wildcard_and_no_secrets(role: str) -> None:
    rights = given(rules(role))
    assert {verb for _, _, verb in rights - needed(OPTIONS[role], is_listed=True)} <= READ_ONLY
    assert not any("*" in part for right in rights for part in right)
    assert not any(resource.startswith("secrets") for _, resource, _ in rights)


def test_in_a_given_namespace_the_namespace_itself_is_only_read() -> None:
    assert {verb for _, resource, verb in given(rules("tuneoff-katib-in-namespace")) if resource == "namespaces"} <= READ_ONLY


def test_the_role_for_pods_gives_what_a_pool_uses_besides() -> None:
    wanted = {
        (resource.group, f"{resource.plural}/{subresource}".rstrip("/"), verb)
        for resource, subresource, verbs in POOL_RIGHTS
        for verb in verbs
    }
    assert given(rules("tuneoff-pods")) == wanted


@pytest.mark.parametrize("role", OPTIONS)
def test_a_missing_right_would_be_seen(role: str) -> None:
    """Control: without its rule on experiments the role lacks them."""
    less = [rule for rule in rules(role) if rule["resources"] != ["experiments"]]
    assert ("kubeflow.org", "experiments", "create") in needed(OPTIONS[role], is_listed=True) - given(less)
