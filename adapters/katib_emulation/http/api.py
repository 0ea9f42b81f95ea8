"""The verbs of the API on resources, without HTTP: from a target, a query and a body to an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from katib_emulation.http import patches
from katib_emulation.http.access import Access
from katib_emulation.http.paths import Target
from katib_emulation.http.queries import is_true
from katib_emulation.kinds import EXPERIMENTS, NAMESPACES, PODS, Kind
from katib_emulation.objects import Object, copied, is_deleting
from katib_emulation.selectors import Selector, field_selector, label_selector
from katib_emulation.statuses import conflict, details_of, invalid, method_not_allowed, not_found, terminating
from katib_emulation.storage import defaults
from katib_emulation.storage.deletion import Propagation
from katib_emulation.storage.store import Store

Admission = Callable[[Object, Object | None, Object], Object]
"""(new object, old object or None, namespace) -> the object with its defaults; raises ApiError."""

Query = Mapping[str, str]

POLICIES: tuple[Propagation, ...] = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class Api:
    """Serves requests on resources."""

    store: Store
    access: Access
    admit_experiment: Admission

    def get(self, target: Target, query: Query) -> tuple[int, Object]:
        """Read one object, or list a collection.

        Raises:
            ApiError: 404, 400, 403.
        """
        kind, name = target.kind, target.name
        if name is not None:
            self.access.check("get", kind, target.subresource, target.namespace, name)
            return 200, self.store.get(kind, name, target.namespace)
        self.access.check("list", kind, None, target.namespace, None)
        version, found = self._selected(target, query)
        metadata = {"continue": "", "resourceVersion": str(version)}
        return 200, {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": found}

    def create(self, target: Target, body: Any) -> tuple[int, Object]:
        """Store a new object.

        Raises:
            ApiError: 400, 403, 404, 409, 422.
        """
        if target.name is not None or (target.kind.namespaced and target.namespace is None):
            raise method_not_allowed()
        kind = target.kind
        self.access.check("create", kind, None, target.namespace, None)
        patches.check_type(kind, body)
        defaults.name(kind, body, target.namespace)
        if kind is EXPERIMENTS and body["metadata"].get("name"):
            body.pop("status", None)
            body = self.admit_experiment(body, None, self._open_namespace(kind, body))
        return 201, self.store.create(kind, body, target.namespace)

    def put(self, target: Target, body: Any) -> tuple[int, Object]:
        """Replace an object or its status.

        Raises:
            ApiError: 400, 403, 404, 409, 422.
        """
        kind, name = target.kind, self._name(target)
        self.access.check("update", kind, target.subresource, target.namespace, name)
        patches.check_type(kind, body)
        patches.check_version_given(kind, name, body)
        return 200, self._change(target, name, lambda _: body)

    def patch(self, target: Target, body: Any, content_type: str) -> tuple[int, Object]:
        """Merge a patch into an object or its status.

        Raises:
            ApiError: 400, 403, 404, 409, 415, 422.
        """
        kind, name = target.kind, self._name(target)
        self.access.check("patch", kind, target.subresource, target.namespace, name)
        patches.check_patch_type(content_type)

        def wanted(current: Object) -> Any:
            result = patches.merged(current, body)
            patches.check_type(kind, result)
            return result

        return 200, self._change(target, name, wanted)

    def delete(self, target: Target, query: Query, options: Any) -> tuple[int, Object]:
        """Delete an object, or the selected ones of a collection.

        Raises:
            ApiError: 400, 403, 404, 409, 422.
        """
        if target.subresource is not None:
            raise method_not_allowed()
        kind, namespace = target.kind, target.namespace
        options = options if isinstance(options, dict) else {}
        policy = _policy(options, query)
        if target.name is None:
            self.access.check("deletecollection", kind, None, namespace, None)
            _, chosen = self._selected(target, query)
            for obj in chosen:
                self.store.discard(kind, obj["metadata"]["name"], obj["metadata"].get("namespace"), policy)
            return 200, {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": {}, "items": chosen}
        self.access.check("delete", kind, None, namespace, target.name)
        self._check_preconditions(target, target.name, options.get("preconditions") or {})
        last = self.store.delete(kind, target.name, namespace, policy)
        if is_deleting(last) or kind in (NAMESPACES, PODS):
            return 200, last
        details = {**details_of(kind, target.name), "uid": last["metadata"]["uid"]}
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def selector(self, target: Target, query: Query) -> Selector:
        """Return the test for what a list or a watch asks for.

        Raises:
            ApiError: 400, a selector cannot be parsed.
        """
        by_label = label_selector(query.get("labelSelector"))
        by_field = field_selector(query.get("fieldSelector"))
        return lambda obj: by_label(obj) and by_field(obj)

    def _selected(self, target: Target, query: Query) -> tuple[int, list[Object]]:
        selects = self.selector(target, query)
        version, found = self.store.view(target.kind, target.namespace)
        return version, [obj for obj in found if selects(obj)]

    def _change(self, target: Target, name: str, wanted: Callable[[Object], Any]) -> Object:
        kind, status_only = target.kind, target.subresource == "status"

        def change(current: Object) -> None:
            before = copied(current)
            patches.replace(kind, current, wanted(before), status_only)
            if kind is EXPERIMENTS and not status_only and current.get("spec") != before.get("spec"):
                namespace = self.store.get(NAMESPACES, target.namespace or "")
                admitted = self.admit_experiment(copied(current), before, namespace)
                current.clear()
                current.update(admitted)

        changed = self.store.update(kind, name, target.namespace, change)
        if changed is None:
            raise not_found(kind, name)
        return changed

    def _name(self, target: Target) -> str:
        if target.name is None or target.subresource == "log":
            raise method_not_allowed()
        return target.name

    def _open_namespace(self, kind: Kind, obj: Object) -> Object:
        name = obj["metadata"]["namespace"]
        namespace = self.store.get(NAMESPACES, name)
        if is_deleting(namespace):
            raise terminating(kind, obj["metadata"]["name"], name)
        return namespace

    def _check_preconditions(self, target: Target, name: str, wanted: Mapping[str, Any]) -> None:
        if not wanted:
            return
        metadata = self.store.get(target.kind, name, target.namespace)["metadata"]
        for field, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if wanted.get(field) and wanted[field] != metadata[field]:
                why = f"Precondition failed: {title} in precondition: {wanted[field]}, {title} in object meta: {metadata[field]}"
                raise conflict(target.kind, name, why)


def _policy(options: Mapping[str, Any], query: Query) -> Propagation:
    """Return the propagation policy of the body, else of the query.

    Raises:
        ApiError: 422, it is unknown.
    """
    asked = options.get("propagationPolicy") or query.get("propagationPolicy")
    if asked is None:
        orphans = options.get("orphanDependents") or is_true(query.get("orphanDependents"))
        return "Orphan" if orphans else "Background"
    for policy in POLICIES:
        if asked == policy:
            return policy
    options_kind = Kind("meta.k8s.io", "v1", "deleteoptions", "DeleteOptions", False)
    supported = ", ".join(f'"{policy}"' for policy in sorted(POLICIES))
    raise invalid(options_kind, "", [("propagationPolicy", f'Unsupported value: "{asked}": supported values: {supported}')])
