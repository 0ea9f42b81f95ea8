"""What clients ask before anything else: version, groups and resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from katib_emulation.kinds import KINDS, PODS, WITH_STATUS, Kind

VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0-emulated",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "emulated",
}

REVIEWS = ("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")


def discover(path: str, kinds: Sequence[Kind] = KINDS) -> dict[str, Any] | None:
    """Return the answer of a server of these kinds to a discovery path; None: it is none."""
    served = _groups(kinds)
    parts = path.strip("/").split("/")
    match parts:
        case ["version"]:
            return VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(*pair) for pair in served]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["api", "v1"]:
            return _resources(kinds, "", "v1")
        case ["apis", group] if group in dict(served):
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, dict(served)[group])}
        case ["apis", group, version] if (group, version) in served:
            return _resources(kinds, group, version)
    return None


def _groups(kinds: Sequence[Kind]) -> list[tuple[str, str]]:
    named = [(kind.group, kind.version) for kind in kinds if kind.group]
    return sorted({*named, REVIEWS[:2]})


def _group(name: str, version: str) -> dict[str, Any]:
    one = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [one], "preferredVersion": one}


def _resources(kinds: Sequence[Kind], group: str, version: str) -> dict[str, Any]:
    resources = [entry for kind in kinds if (kind.group, kind.version) == (group, version) for entry in _entries(kind)]
    if (group, version) == REVIEWS[:2]:
        resources.append({"name": REVIEWS[2], "singularName": "", "namespaced": False, "kind": REVIEWS[3], "verbs": ["create"]})
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _entries(kind: Kind) -> list[dict[str, Any]]:
    common = {"namespaced": kind.namespaced, "kind": kind.kind}
    entries = [{"name": kind.plural, "singularName": kind.kind.lower(), **common, "verbs": VERBS}]
    if kind in WITH_STATUS:
        entries.append({"name": f"{kind.plural}/status", "singularName": "", **common, "verbs": ["get", "patch", "update"]})
    if kind is PODS:
        entries.append({"name": "pods/log", "singularName": "", **common, "verbs": ["get"]})
    return entries
