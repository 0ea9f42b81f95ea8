"""Rights as (group, resource, verb): what the adapter asks for, what it can do without, and what a run was seen to use."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from adapters.katib.faulty_proxy import Seen
from tuneoff_adapters.katib.checks import katib_needs
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.kubernetes.removal import SERVING

Rights = set[tuple[str, str, str]]

OWN, GIVEN = KatibOptions(), KatibOptions(namespace="team")
VERBS = {"POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
EVERYBODYS = ("selfsubjectaccessreviews",)  # Kubernetes lets every user ask what they may do
ELSEWHERE: Rights = {  # where Katib runs, and what no namespace has: read if it may be
    ("apps", "deployments", "get"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "get"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get"),
}


def needed(options: KatibOptions, *, is_listed: bool = False) -> Rights:
    """Return the rights without which deploy refuses; `is_listed`: of a run by `fixed` or `grid`."""
    return {
        (resource.group, f"{resource.plural}/{subresource}" if subresource else resource.plural, verb)
        for resource, subresource, verbs in katib_needs(options, is_listed=is_listed).rights
        for verb in verbs
    }


def optional(options: KatibOptions) -> Rights:
    """Return the rights that are used where they are given: to look further."""
    if options.namespace is None:
        return {*ELSEWHERE, ("", "namespaces", "list")}
    return {*ELSEWHERE, ("", "namespaces", "get"), *((kind.group, kind.plural, "list") for kind in SERVING)}


def used(seen: Iterable[Seen]) -> Rights:
    """Return the rights that requests need; those for paths that are no resource everybody has."""
    return {right for one in seen if (right := right_of(one.method, one.target)) is not None}


def right_of(method: str, target: str) -> tuple[str, str, str] | None:
    """Return the right for one request, None for one that needs none of its own."""
    address = urlsplit(target)
    root, *parts = [part for part in address.path.split("/") if part]
    group = "" if root == "api" else parts.pop(0) if parts else ""
    rest = parts[1:]  # after the version
    if root not in ("api", "apis") or not rest:
        return None
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource, is_named = rest[0], len(rest) > 1
    if resource in EVERYBODYS:
        return None
    if method == "GET":
        is_watch = "true" in parse_qs(address.query).get("watch", [])
        verb = "get" if is_named else "watch" if is_watch else "list"
    else:
        verb = VERBS[method]
    return group, "/".join([resource, *rest[2:]]), verb
