"""Who may do what: everything, except what `--deny VERB:RESOURCE` takes away, so that the lack of rights can be tried."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from katib_emulation.http.paths import Target
from katib_emulation.kinds import Kind
from katib_emulation.statuses import ApiError, details_of

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
