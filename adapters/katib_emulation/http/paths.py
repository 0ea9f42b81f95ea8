"""From the path of a request to the resource that it means."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from katib_emulation.kinds import KINDS, PODS, WITH_STATUS, Kind
from katib_emulation.statuses import unknown_path

_KINDS = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about: a collection (`name` is None), one object, or its `status` or `log`."""

    kind: Kind
    namespace: str | None  # None: all namespaces, or a cluster-wide kind
    name: str | None
    subresource: str | None


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
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and len(rest) == 3 and rest[2] == "status"):
        namespace, rest = rest[1], rest[2:]
    kind = _KINDS.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or "" in rest or (namespace is not None) > kind.namespaced:
        raise unknown_path()
    target = Target(kind, namespace, rest[1] if len(rest) > 1 else None, rest[2] if len(rest) > 2 else None)
    if kind.namespaced and namespace is None and target.name is not None:
        raise unknown_path()
    if target.subresource is not None and not _has(kind, target.subresource):
        raise unknown_path()
    return target


def _has(kind: Kind, subresource: str) -> bool:
    return (subresource == "status" and kind in WITH_STATUS) or (subresource == "log" and kind is PODS)
