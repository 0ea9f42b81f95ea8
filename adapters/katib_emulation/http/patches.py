"""Changes that clients send: merge patches, whole objects, and the status alone."""

from __future__ import annotations

from typing import Any

from katib_emulation.kinds import KATIB_GROUP, WITH_STATUS, Kind
from katib_emulation.objects import Object, copied
from katib_emulation.statuses import bad_request, conflict, invalid, unsupported_media_type

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def merged(target: Any, patch: Any) -> Any:
    """Return `target` after a JSON merge patch (RFC 7386): null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def check_patch_type(content_type: str) -> None:
    """Refuse the kinds of patches that are not emulated; lists in a strategic patch are replaced as in a merge patch.

    Raises:
        ApiError: 415.
    """
    if content_type not in (MERGE, STRATEGIC):
        raise unsupported_media_type(content_type, (MERGE, STRATEGIC))


def check_type(kind: Kind, obj: Any) -> None:
    """Check that a body is an object of this kind; what built-in kinds leave out is filled in.

    Raises:
        ApiError: 400 or 422.
    """
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata", {}), dict):
        raise bad_request(f"the body must be a {kind.kind} object in JSON")
    given_kind, given_version = obj.get("kind"), obj.get("apiVersion")
    if kind.group == KATIB_GROUP:
        for name, given in (("Kind", given_kind), ("apiVersion", given_version)):
            if not given:
                raise bad_request(f"Object '{name}' is missing in the body")
    if given_version and given_version != kind.api_version:
        text = f"the API version in the data ({given_version}) does not match the expected API version ({kind.api_version})"
        raise bad_request(text)
    if given_kind and given_kind != kind.kind:
        name = (obj.get("metadata") or {}).get("name") or ""
        raise invalid(kind, name, [("kind", f'Invalid value: "{given_kind}": must be {kind.kind}')])
    obj.setdefault("metadata", {})


def replace(kind: Kind, current: Object, wanted: Object, status_only: bool) -> None:
    """Turn `current` into `wanted` in place: without its status, or (`status_only`) nothing but the status.

    Raises:
        ApiError: 409, `wanted` is based on an older version; 400, it is another object.
    """
    metadata = current["metadata"]
    asked = wanted["metadata"]
    name = metadata["name"]
    if asked.get("name", name) != name:
        raise bad_request(f"the name of the object ({asked['name']}) does not match the name on the URL ({name})")
    if asked.get("resourceVersion") and str(asked["resourceVersion"]) != metadata["resourceVersion"]:
        raise conflict(kind, name)
    if asked.get("uid") and asked["uid"] != metadata["uid"]:
        raise conflict(
            kind, name, f"the UID in the precondition ({asked['uid']}) does not match the UID in record ({metadata['uid']})"
        )
    if status_only:
        if "status" in wanted:
            current["status"] = wanted["status"]
        return
    kept = {part: current[part] for part in ("status",) if kind in WITH_STATUS and part in current}
    fresh = {part: value for part, value in wanted.items() if not (part == "status" and kind in WITH_STATUS)}
    managed = metadata.get("managedFields")
    current.clear()
    current.update({**fresh, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": dict(asked), **kept})
    if managed is not None:
        current["metadata"].setdefault("managedFields", managed)


def check_version_given(kind: Kind, name: str, wanted: Object) -> None:
    """Refuse a PUT of a Katib object that does not say which version it replaces.

    Raises:
        ApiError: 422.
    """
    if kind.group == KATIB_GROUP and not wanted["metadata"].get("resourceVersion"):
        raise invalid(kind, name, [("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")])
