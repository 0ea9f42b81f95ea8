"""What deploy checks before anything is created: each finding is one line, and all of it takes no longer than a person waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tuneoff.base.packages import install_command, installed_version, release
from tuneoff.errors import InfrastructureError, MissingPackageError
from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing
from tuneoff_adapters.kubernetes.connection import Connection, Limits
from tuneoff_adapters.kubernetes.create import check_namespace
from tuneoff_adapters.kubernetes.options import KatibOptions
from tuneoff_adapters.kubernetes.parallel_calls import at_once, value
from tuneoff_adapters.kubernetes.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    EXPERIMENTS,
    JOBS,
    KATIB_GROUP,
    KATIB_VERSION,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    SUGGESTIONS,
    TRIALS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
    condition,
)

CHECK_SECONDS = 12.0
FIRST_SECONDS = 8.0  # of them for the first answer: who is silent then stays silent
SLACK_SECONDS = 1.0  # of them for the calls themselves to give up, each with its own reason
CLIENT = "kubernetes"
CLIENT_REQUIREMENT = "kubernetes>=27.2,<36"
BROKEN_FROM = "36"  # every read of an object with labels fails in the SDK
WEBHOOKS = "katib.kubeflow.org"  # the name of both of Katib's webhook configurations
CONTROLLER, DATABASE_MANAGER = "katib-controller", "katib-db-manager"
Rights = tuple[tuple[Resource, str, tuple[str, ...]], ...]  # resource, subresource, verbs
OWN_NAMESPACE_RIGHTS: Rights = ((NAMESPACES, "", ("create", "get", "delete")),)  # where the run makes its namespace
GIVEN_NAMESPACE_RIGHTS: Rights = ((CONFIG_MAPS, "", ("delete",)),)  # where it works in one that is there
RIGHTS: Rights = (  # in both cases
    (EXPERIMENTS, "", ("create", "get", "list", "watch", "delete")),
    (TRIALS, "", ("list", "watch")),
    (SUGGESTIONS, "", ("get", "list")),
    (JOBS, "", ("list",)),
    (PODS, "", ("list", "watch", "delete")),
    (PODS, "log", ("get",)),
    (EVENTS, "", ("list",)),
    (CONFIG_MAPS, "", ("create", "get", "list")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the checks learnt, for the record."""

    server_version: str  # e.g. "v1.36.2"; "unknown" where it may not be read
    katib_image: str | None  # the controller's; None where it may not be read


def check_client() -> None:
    """Check the installed kubernetes client; imports nothing.

    Raises:
        MissingPackageError: the SDK does not work with it.
    """
    version = installed_version(CLIENT)
    if version is None or release(version) < release(BROKEN_FROM):
        return
    raise MissingPackageError(
        f"the Katib SDK breaks with the kubernetes client from {BROKEN_FROM} on, but {version} is installed; "
        f"run: {install_command(CLIENT_REQUIREMENT)}"
    )


def reach(
    connect: Callable[[], Connection], options: KatibOptions, namespace: str, within_seconds: float = CHECK_SECONDS
) -> tuple[Connection, Cluster]:
    """Connect, and check the cluster: reading the kubeconfig and all answers have the one limit together.

    Raises:
        InfrastructureError: as for `check_cluster`, or there is no usable kubeconfig.
    """
    deadline = time.monotonic() + within_seconds
    answer = at_once({"connection": connect}, within_seconds)["connection"]
    if isinstance(answer, TimeoutError):
        raise InfrastructureError(
            f"reading the kubeconfig takes longer than {within_seconds:g} s; does its credential program wait for a person?"
        )
    connection: Connection = value(answer)
    return connection, check_cluster(connection, options, namespace, max(deadline - time.monotonic(), 0.0))


def check_cluster(
    connection: Connection, options: KatibOptions, namespace: str, within_seconds: float = CHECK_SECONDS
) -> Cluster:
    """Find out whether the cluster can take a run in `namespace`, which is there if it is the options' own; creates nothing.

    Raises:
        InfrastructureError: it cannot, or does not answer in time.
    """
    deadline = time.monotonic() + within_seconds
    version = _server_version(connection, min(deadline, time.monotonic() + FIRST_SECONDS))
    hurried = _hurried(connection, deadline)
    calls: dict[str, Callable[[], Any]] = {
        "group": lambda: hurried.read(f"/apis/{KATIB_GROUP}"),
        "resources": lambda: hurried.read(f"/apis/{KATIB_GROUP}/{KATIB_VERSION}"),
        **{name: _getting(hurried, DEPLOYMENTS, name, options.katib_namespace) for name in (CONTROLLER, DATABASE_MANAGER)},
        **{kind.plural: _getting(hurried, kind, WEBHOOKS) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)},
    }
    if options.namespace is not None:
        calls["namespace"] = _getting(hurried, NAMESPACES, namespace)
    rights = {
        f"{verb} {resource.full_name}{f'/{subresource}' if subresource else ''}": (verb, resource, subresource)
        for resource, subresource, verbs in needed_rights(options)
        for verb in verbs
    }
    reviews = {text: _reviewing(hurried, verb, resource, namespace, sub) for text, (verb, resource, sub) in rights.items()}
    answers = _answers({**calls, **reviews}, deadline)
    _check_api(answers["group"], answers["resources"])
    controller = _check_deployment(answers[CONTROLLER], CONTROLLER, options.katib_namespace, is_needed=True)
    _check_deployment(answers[DATABASE_MANAGER], DATABASE_MANAGER, options.katib_namespace, is_needed=False)
    for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
        _check_webhooks(answers[kind.plural], kind)
    if options.namespace is not None:
        check_namespace(answers["namespace"], namespace)
    _check_rights({text: answers[text] for text in rights}, namespace)
    return Cluster(server_version=version, katib_image=_image(controller))


def needed_rights(options: KatibOptions) -> Rights:
    """Return what the kubeconfig's user must be allowed."""
    return (*(OWN_NAMESPACE_RIGHTS if options.namespace is None else GIVEN_NAMESPACE_RIGHTS), *RIGHTS)


def _hurried(connection: Connection, deadline: float) -> Connection:
    """Return the connection with what time is left, and no second try where no connection can be made."""
    left = max(deadline - time.monotonic() - SLACK_SECONDS, 0.05)
    return connection.limited(Limits(api=left, connect=0.0, call=left))


def _answers(calls: Mapping[str, Callable[[], Any]], deadline: float) -> dict[str, Any]:
    late = InfrastructureError("the API server is too slow: it did not answer all of the check's questions in time; try later")
    answers = at_once(calls, max(deadline - time.monotonic(), SLACK_SECONDS))
    return {name: late if isinstance(answer, TimeoutError) else answer for name, answer in answers.items()}


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


def _check_api(group: Any, resources: Any) -> None:
    """Check that the API server serves Katib's kinds in the version that the SDK speaks."""
    install = "install Katib v0.19 (kubectl apply -k of its manifests/v1beta1/installs/katib-standalone)"
    if isinstance(group, Missing):
        raise InfrastructureError(f"Katib is not installed: the API server has no group {KATIB_GROUP}; {install}")
    versions = [str(entry.get("version")) for entry in value(group).get("versions") or []]
    if KATIB_VERSION not in versions:
        raise InfrastructureError(
            f"Katib's API must be {KATIB_GROUP}/{KATIB_VERSION}, but the API server has "
            f"{', '.join(versions) or 'none'} of it; {install}"
        )
    found = {str(entry.get("name")) for entry in value(resources).get("resources") or []}
    missing = [kind.full_name for kind in (EXPERIMENTS, TRIALS, SUGGESTIONS) if kind.plural not in found]
    if missing:
        raise InfrastructureError(
            f"Katib is not installed: the API server has no {', '.join(missing)} in {KATIB_VERSION}; {install}"
        )


def _check_deployment(answer: Any, name: str, namespace: str, is_needed: bool) -> Object | None:
    """Check that a part of Katib runs, and return its Deployment, or None where it may not be read."""
    if isinstance(answer, Missing):
        if not is_needed:  # other installations keep the metrics elsewhere
            return None
        raise InfrastructureError(
            f"Katib's controller is not in namespace {namespace!r} (no Deployment {name}); "
            "set option `katib_namespace` to where it runs, or install it"
        )
    if isinstance(answer, ApiError) and answer.status == 403:
        return None
    deployment: Object = value(answer)
    available = condition(deployment, "Available")
    if available is None or available.get("status") != "True":
        told = (available or {}).get("message") or "it has no condition Available"
        raise InfrastructureError(
            f"Katib does not run: Deployment {namespace}/{name} is not available ({told}); "
            f"see: kubectl describe deployment {name} -n {namespace}"
        )
    return deployment


def _check_webhooks(answer: Any, kind: Resource) -> None:
    """Check that the API server can trust Katib's webhooks: without their certificate no experiment can be created."""
    if isinstance(answer, ApiError) and answer.status in (403, 404):
        return
    for webhook in value(answer).get("webhooks") or []:
        if not webhook.get("clientConfig", {}).get("caBundle"):
            raise InfrastructureError(
                f"Katib's webhook {webhook.get('name')} has no certificate yet "
                f"(caBundle is empty in {kind.plural}/{WEBHOOKS}); wait for katib-controller to write it, or restart it"
            )


def _check_rights(answers: Mapping[str, Any], namespace: str) -> None:
    missing = [text for text, answer in answers.items() if value(answer) is not True]
    if missing:
        raise InfrastructureError(
            f"the kubeconfig's user lacks rights for namespace {namespace!r}: {', '.join(missing)}; "
            "bind a role of deploy/katib-rights.yaml to it, or use another context"
        )


def _image(controller: Object | None) -> str | None:
    if controller is None:
        return None
    containers = controller.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    image = containers[0].get("image")
    return None if image is None else str(image)


def _getting(connection: Connection, resource: Resource, name: str, namespace: str | None = None) -> Callable[[], Object]:
    return lambda: connection.get(resource, name, namespace)


def _reviewing(connection: Connection, verb: str, resource: Resource, namespace: str, subresource: str) -> Callable[[], bool]:
    return lambda: connection.may(verb, resource, namespace, subresource)
