"""Who may do what: everything, except what `--deny VERB:RESOURCE` takes away, so that the lack of rights can be tried."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from katib_emulation.kinds import KINDS, Kind
from katib_emulation.statuses import ApiError, bad_request, details_of

USER = "emulated"

VERBS = ("create", "get", "list", "watch", "update", "patch", "delete", "deletecollection")


@dataclass(frozen=True, slots=True)
class Denial:
    """One right that nobody has; "*" stands for every verb."""

    verb: str
    resource: str  # the plural, with "/SUBRESOURCE" where there is one: pods/log

    @classmethod
    def parse(cls, text: str) -> Denial:
        """Parse `VERB:RESOURCE`.

        Raises:
            ValueError: the verb or the resource is unknown.
        """
        verb, _, resource = text.partition(":")
        if verb not in (*VERBS, "*"):
            raise ValueError(f"must be VERB:RESOURCE with one of {', '.join(VERBS)} or * as VERB, but got {text!r}")
        if resource.partition("/")[0] not in {kind.plural for kind in KINDS}:
            raise ValueError(f"must be VERB:RESOURCE with a RESOURCE such as experiments or pods/log, but got {text!r}")
        return cls(verb, resource)


class Access:
    """The rights of the only user."""

    def __init__(self, denials: Collection[Denial] = ()) -> None:
        self._denials = frozenset(denials)

    def allows(self, verb: str, resource: str) -> bool:
        """Whether the user may do this."""
        return not self._denials & {Denial(verb, resource), Denial("*", resource)}

    def check(self, verb: str, kind: Kind, subresource: str | None, namespace: str | None, name: str | None) -> None:
        """Refuse what is denied.

        Raises:
            ApiError: 403.
        """
        resource = f"{kind.plural}/{subresource}" if subresource else kind.plural
        if self.allows(verb, resource):
            return
        where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
        what = f'cannot {verb} resource "{resource}" in API group "{kind.group}"{where}'
        about = f'{kind.resource} "{name}"' if name else kind.resource
        raise ApiError(403, "Forbidden", f'{about} is forbidden: User "{USER}" {what}', details_of(kind, name or ""))

    def review(self, review: dict[str, Any]) -> dict[str, Any]:
        """Answer a SelfSubjectAccessReview.

        Raises:
            ApiError: 400, it asks for nothing.
        """
        spec = review.get("spec") or {}
        asked = spec.get("resourceAttributes")
        if not asked and not spec.get("nonResourceAttributes"):
            raise bad_request("exactly one of resourceAttributes or nonResourceAttributes must be specified")
        asked = asked or {}
        resource = "/".join(filter(None, (asked.get("resource"), asked.get("subresource"))))
        allowed = self.allows(asked.get("verb", ""), resource)
        status: dict[str, Any] = {"allowed": allowed}
        if not allowed:
            status["reason"] = f"denied by --deny {asked.get('verb')}:{resource}"
        head = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
        return {**head, "metadata": review.get("metadata") or {}, "spec": spec, "status": status}
