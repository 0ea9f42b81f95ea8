"""The role in deploy/ gives what the adapter asks the cluster about, and nothing that would surprise who grants it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tuneoff_adapters.katib.checks import RIGHTS

ROLE = Path(__file__).parents[2] / "deploy" / "katib-rights.yaml"
NEEDED = {
    (resource.group, f"{resource.plural}/{subresource}" if subresource else resource.plural, verb)
    for resource, subresource, verbs in RIGHTS
    for verb in verbs
}
READ_ONLY = {"get", "list", "watch"}


def given(rules: Iterable[Mapping[str, Any]]) -> set[tuple[str, str, str]]:
    """Return (group, resource, verb) of every right that the rules give."""
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def rules() -> list[dict[str, Any]]:
    role = yaml.safe_load(ROLE.read_text())
    assert role["kind"] == "ClusterRole"
    found: list[dict[str, Any]] = role["rules"]
    return found


def test_the_role_gives_all_that_the_adapter_needs() -> None:
    assert given(rules()) >= NEEDED


def test_beyond_that_it_only_lets_read_and_has_no_wildcard_and_no_secrets() -> None:
    rights = given(rules())
    assert {verb for _, _, verb in rights - NEEDED} <= READ_ONLY
    assert not any("*" in part for right in rights for part in right)
    assert not any(resource.startswith("secrets") for _, resource, _ in rights)


def test_a_missing_right_would_be_seen() -> None:
    """Control: without its rule on experiments the role lacks them."""
    less = [rule for rule in rules() if rule["resources"] != ["experiments"]]
    assert ("kubeflow.org", "experiments", "create") in NEEDED - given(less)
