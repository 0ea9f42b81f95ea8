"""The verbs of the API on resources, without HTTP: from a target, a query and a body to an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from katib_emulation.admission import admit_experiment
from katib_emulation.http.access import Access
from katib_emulation.http.paths import Target
from katib_emulation.http.watching import Query, selector
from katib_emulation.kinds import EXPERIMENTS, KATIB_GROUP, NAMESPACES, PODS, WITH_STATUS, Kind
from katib_emulation.objects import Object, copied, is_deleting
from katib_emulation.statuses import (
    bad_request,
    conflict,
    details_of,
    invalid,
    method_not_allowed,
    not_found,
    terminating,
)
from katib_emulation.storage import defaults
from katib_emulation.storage.deletion import Propagation
from katib_emulation.storage.store import Store

POLICIES: Mapping[str | None, Propagation] = {None: "Background", "Background": "Background", "Foreground": "Foreground"}


@dataclass(frozen=True, slots=True)
class Api:
    """Serves requests on resources."""

    store: Store
    access: Access

    def get(self, target: Target, query: Query) -> Object:
        """Read one object, or list a collection.

        Raises:
            ApiError: 404, 403, 400.
        """
        if target.name is not None:
            return self.store.get(self.access.check("get", target), target.name, target.namespace)
        kind, selects = self.access.check("list", target), selector(query)
        version, found = self.store.view(kind, target.namespace)
        metadata = {"resourceVersion": str(version)}
        items = [obj for obj in found if selects(obj)]
        return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}

    def create(self, target: Target, body: Any) -> Object:
        """Store a new object.

        Raises:
            ApiError: 400, 403, 404, 405, 409, 422.
        """
        if target.name is not None or (target.kind.namespaced and target.namespace is None):
            raise method_not_allowed()
        kind = self.access.check("create", target)
        _check_type(kind, body)
        defaults.name(kind, body, target.namespace)
        if kind is EXPERIMENTS and body["metadata"].get("name"):
            body.pop("status", None)
            namespace = self.store.get(NAMESPACES, body["metadata"]["namespace"])
            if is_deleting(namespace):
                raise terminating(kind, body["metadata"]["name"], body["metadata"]["namespace"])
            body = admit_experiment(body, None, namespace)
        return self.store.create(kind, body, target.namespace)

    def patch(self, target: Target, patch: Any) -> Object:
        """Merge a patch into an object; its status stays as it is.

        Raises:
            ApiError: 400, 403, 404, 405, 409, 422.
        """
        if target.name is None:
            raise method_not_allowed()
        kind, name = self.access.check("patch", target), target.name

        def change(current: Object) -> None:
            before = copied(current)
            wanted = _merged(before, patch)
            _check_type(kind, wanted)
            if wanted["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
                raise conflict(kind, name)
            if kind in WITH_STATUS and "status" in before:
                wanted["status"] = before["status"]
            if kind is EXPERIMENTS and wanted.get("spec") != before.get("spec"):
                wanted = admit_experiment(wanted, before, self.store.get(NAMESPACES, target.namespace or ""))
            current.clear()
            current.update(wanted)

        changed = self.store.update(kind, name, target.namespace, change)
        if changed is None:
            raise not_found(kind, name)
        return changed

    def delete(self, target: Target, query: Query, options: Any) -> Object:
        """Delete an object.

        Raises:
            ApiError: 403, 404, 405, 422.
        """
        if target.name is None:
            raise method_not_allowed()
        kind = self.access.check("delete", target)
        asked = (options or {}).get("propagationPolicy") or query.get("propagationPolicy")
        if asked not in POLICIES:
            why = f'Unsupported value: "{asked}": the emulation has "Background" and "Foreground"'
            raise invalid(kind, target.name, [("propagationPolicy", why)])
        last = self.store.delete(kind, target.name, target.namespace, POLICIES[asked])
        if is_deleting(last) or kind in (NAMESPACES, PODS):
            return last
        details = {**details_of(kind, target.name), "uid": last["metadata"]["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _merged(target: Any, patch: Any) -> Any:
    """Return the target with a JSON merge patch (RFC 7386) applied."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _check_type(kind: Kind, obj: Any) -> None:
    """Check that a body is an object of this kind; what built-in kinds leave out is filled in later.

    Raises:
        ApiError: 400.
    """
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata", {}), dict):
        raise bad_request(f"the body must be a {kind.kind} object in JSON")
    for name, given, wanted in (("Kind", obj.get("kind"), kind.kind), ("apiVersion", obj.get("apiVersion"), kind.api_version)):
        if not given and kind.group == KATIB_GROUP:
            raise bad_request(f"Object '{name}' is missing in the body")
        if given and given != wanted:
            raise bad_request(f"the {name} in the data ({given}) does not match the expected {name} ({wanted})")
    obj.setdefault("metadata", {})
