"""The verbs of the API on resources, and who may use them, without HTTP: from a target, a query and a body to an answer.

The only user may do everything, except what `--deny VERB:RESOURCE` takes away, so that the lack of rights can be tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from katib_emulation.admission import admit_experiment
from katib_emulation.http.paths import Target
from katib_emulation.http.watching import Query, selector
from katib_emulation.kinds import EXPERIMENTS, KATIB_GROUP, NAMESPACES, PODS, WITH_STATUS, Kind
from katib_emulation.objects import Object, copied, is_deleting
from katib_emulation.statuses import (
    ApiError,
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

REVIEW_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class Access:
    """The rights of the only user."""

    def __init__(self, denials: Collection[str] = ()) -> None:
        """`denials`: each VERB:RESOURCE, with "/SUBRESOURCE" where there is one, as in get:pods/log."""
        self._denials = frozenset(denials)

    def check(self, verb: str, target: Target) -> Kind:
        """Return the kind that a request is about, unless it is denied.

        Raises:
            ApiError: 403.
        """
        kind, name = target.kind, target.name
        resource = f"{kind.plural}/log" if target.is_log else kind.plural
        if f"{verb}:{resource}" in self._denials:
            where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
            what = f'User "emulated" cannot {verb} resource "{resource}" in API group "{kind.group}"{where}'
            about = f'{kind.resource} "{name}"' if name else kind.resource
            raise ApiError(403, "Forbidden", f"{about} is forbidden: {what}", details_of(kind, name or ""))
        return kind

    def review(self, review: dict[str, Any]) -> dict[str, Any]:
        """Answer a SelfSubjectAccessReview."""
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = f"{asked['verb']}:{resource}" not in self._denials
        head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        return {**head, "metadata": {}, "spec": review["spec"], "status": {"allowed": allowed}}


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
