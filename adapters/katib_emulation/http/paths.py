"""From the path of a request to the resource that it means, and what clients ask before anything else: version and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from katib_emulation.kinds import KINDS, PODS, Kind
from katib_emulation.statuses import unknown_path

_KINDS = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
_VERBS = ["create", "delete", "get", "list", "patch", "watch"]
_UNKNOWN = dict.fromkeys(("gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler"), "")
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0-emulated", "platform": "emulated", **_UNKNOWN}


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about: a collection (`name` is None), one object, or a pod's log."""

    kind: Kind
    namespace: str | None  # None: all namespaces, or a cluster-wide kind
    name: str | None
    is_log: bool = False


def parse(path: str) -> Target:
    """Parse `/api/v1/...` or `/apis/GROUP/VERSION/...`.

    Raises:
        ApiError: 404, no such resource.
    """
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = _KINDS.get((group, version, rest[0]))
    if kind is None or "" in rest or (namespace is not None) > kind.namespaced:
        raise unknown_path()
    target = Target(kind, namespace, rest[1] if len(rest) > 1 else None, kind is PODS and rest[2:] == ["log"])
    if len(rest) > 2 + target.is_log or (kind.namespaced and namespace is None and target.name is not None):
        raise unknown_path()
    return target


def discover(path: str, kinds: Sequence[Kind]) -> dict[str, Any] | None:
    """Return the answer of a server of these kinds to a discovery path; None: it is none."""
    groups = dict(sorted((kind.group, kind.version) for kind in kinds if kind.group))
    match path.strip("/").split("/"):
        case ["version"]:
            return _VERSION
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(*pair) for pair in groups.items()]}
        case ["api", "v1"]:
            return _resources(kinds, "", "v1")
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group])}
        case ["apis", group, version] if groups.get(group) == version:
            return _resources(kinds, group, version)
    return None


def _group(name: str, version: str) -> dict[str, Any]:
    one = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [one], "preferredVersion": one}


def _resources(kinds: Sequence[Kind], group: str, version: str) -> dict[str, Any]:
    found = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    resources = [
        {
            "name": kind.plural,
            "singularName": kind.kind.lower(),
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": _VERBS,
        }
        for kind in found
    ]
    version_named = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version_named, "resources": resources}
