"""What deploy checks before anything is created: each finding is one line, and all of it takes no longer than a person waits."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneoff.errors import InfrastructureError
from tuneoff_adapters.kubernetes.api_errors import ApiError
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.create import check_namespace
from tuneoff_adapters.kubernetes.options import ClusterOptions
from tuneoff_adapters.kubernetes.parallel_calls import at_once, value
from tuneoff_adapters.kubernetes.resources import CONFIG_MAPS, EVENTS, NAMESPACES, PODS, ApiResource, Object

CHECK_SECONDS = 12.0
FIRST_SECONDS = 8.0  # of them for the first answer: who is silent then stays silent
SLACK_SECONDS = 1.0  # of them for the calls themselves to give up, each with its own reason
Rights = tuple[tuple[ApiResource, str, tuple[str, ...]], ...]  # resource, subresource, verbs
OWN_NAMESPACE_RIGHTS: Rights = ((NAMESPACES, "", ("create", "get", "delete")),)  # where the run makes its namespace
GIVEN_NAMESPACE_RIGHTS: Rights = ((CONFIG_MAPS, "", ("delete",)),)  # where it works in one that is there
RIGHTS: Rights = (  # in both cases
    (PODS, "", ("list", "watch", "delete")),
    (PODS, "log", ("get",)),
    (EVENTS, "", ("list",)),
    (CONFIG_MAPS, "", ("create", "get", "list")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a run needs of its cluster."""

    is_own_namespace: bool  # it makes one; else the given one is looked at
    namespace_labels: Mapping[str, str] = field(default_factory=dict)  # that a given one must have
    rights: Rights  # of the kubeconfig's user
    reads: Mapping[str, Callable[[Connection], Object]] = field(default_factory=dict)  # questions besides
    judge: Callable[[Mapping[str, Any]], str | None] = lambda answers: None  # refuses by the answers; returns Katib's image


CheckedCluster = tuple[str, str | None]
"""The server's version ("unknown" where it may not be read), and the image of Katib's controller (None: likewise)."""


def reach(
    connect: Callable[[], Connection], needs: Needs, namespace: str, within_seconds: float = CHECK_SECONDS
) -> tuple[Connection, CheckedCluster]:
    """Connect, and check the cluster: reading the kubeconfig and all answers have the one limit together.

    Raises:
        InfrastructureError: as for `check_cluster`, or there is no usable kubeconfig.
    """
    deadline = time.monotonic() + within_seconds
    connection = connect()  # has a limit of its own
    return connection, check_cluster(connection, needs, namespace, max(deadline - time.monotonic(), 0.0))


def check_cluster(connection: Connection, needs: Needs, namespace: str, within_seconds: float = CHECK_SECONDS) -> CheckedCluster:
    """Find out whether the cluster can take a run in `namespace`, which is there if it is the options' own; creates nothing.

    Raises:
        InfrastructureError: it cannot, or does not answer in time.
    """
    deadline = time.monotonic() + within_seconds
    version = _server_version(connection, min(deadline, time.monotonic() + FIRST_SECONDS))
    hurried = _hurried(connection, deadline)
    calls: dict[str, Callable[[], Any]] = {name: functools.partial(ask, hurried) for name, ask in needs.reads.items()}
    if not needs.is_own_namespace:
        calls["namespace"] = lambda: hurried.get(NAMESPACES, namespace)
    rights = {
        f"{verb} {resource.full_name}{f'/{subresource}' if subresource else ''}": (verb, resource, subresource)
        for resource, subresource, verbs in needs.rights
        for verb in verbs
    }
    reviews = {
        text: functools.partial(hurried.may, verb, resource, namespace, sub) for text, (verb, resource, sub) in rights.items()
    }
    late = InfrastructureError("the API server is too slow: it did not answer all of the check's questions in time; try later")
    answers = at_once({**calls, **reviews}, max(deadline - time.monotonic(), SLACK_SECONDS))
    answers = {name: late if isinstance(answer, TimeoutError) else answer for name, answer in answers.items()}
    katib_image = needs.judge(answers)
    if not needs.is_own_namespace:
        check_namespace(answers["namespace"], namespace, needs.namespace_labels)
    missing = [text for text in rights if value(answers[text]) is not True]
    if missing:
        raise InfrastructureError(
            f"the kubeconfig's user lacks rights for namespace {namespace!r}: {', '.join(missing)}; "
            "bind a role of deploy/katib-rights.yaml to it, or use another context"
        )
    return version, katib_image


def rights_of(options: ClusterOptions, besides: Rights) -> Rights:
    """Return what the kubeconfig's user must be allowed, `besides` what every run needs."""
    return (*(OWN_NAMESPACE_RIGHTS if options.namespace is None else GIVEN_NAMESPACE_RIGHTS), *besides, *RIGHTS)


def _hurried(connection: Connection, deadline: float) -> Connection:
    """Return the connection with what time is left, and no second try where no connection can be made."""
    remaining = max(deadline - time.monotonic() - SLACK_SECONDS, 0.05)
    return connection.limited(Limits(api=remaining, connect=0.0, call=remaining))


def _server_version(connection: Connection, deadline: float) -> str:
    """Return the first answer. In a thread, because no timeout of the client holds while the server's name is looked up."""
    hurried, seconds = _hurried(connection, deadline), max(deadline - time.monotonic(), SLACK_SECONDS)
    answer = at_once({"version": lambda: hurried.read("/version")}, seconds)["version"]
    if isinstance(answer, TimeoutError):
        raise InfrastructureError(
            f"the API server at {connection.host} cannot be reached (no answer within {seconds:.0f} s, not even its name's "
            "address, or credentials that are not there yet); check the kubeconfig's address and this machine's DNS"
        )
    try:
        return str(value(answer).get("gitVersion", "unknown"))
    except ApiError as error:
        if error.status == 401:
            raise InfrastructureError(
                f"the API server at {connection.host} does not accept the kubeconfig's credentials ({error.message}); "
                "renew them, or choose another context"
            ) from error
        if error.status == 403:  # not everybody may ask; the other answers will tell
            return "unknown"
        raise
