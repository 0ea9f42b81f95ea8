"""What deploy asks of a cluster with Katib besides what any cluster is asked: Katib's definitions, controllers and webhooks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tuneoff.base.commands import install_command
from tuneoff.base.packages import installed_version, release
from tuneoff.errors import InfrastructureError, MissingPackageError
from tuneoff_adapters.katib.options import KatibOptions
from tuneoff_adapters.katib.plan import NAMESPACE_LABELS
from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing
from tuneoff_adapters.kubernetes.checks import Needs, Rights, rights_of
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.parallel_calls import value
from tuneoff_adapters.kubernetes.resources import (
    DEPLOYMENTS,
    EXPERIMENTS,
    JOBS,
    KATIB_GROUP,
    KATIB_VERSION,
    MUTATING_WEBHOOKS,
    SUGGESTIONS,
    TRIALS,
    VALIDATING_WEBHOOKS,
    ApiResource,
    Object,
    condition,
)

CLIENT = "kubernetes"
CLIENT_REQUIREMENT = "kubernetes>=27.2,<36"
BROKEN_FROM = "36"  # every read of an object with labels fails in the SDK
WEBHOOKS = "katib.kubeflow.org"  # the name of both of Katib's webhook configurations
MANIFESTS = "manifests/v1beta1/installs/katib-standalone"
CONTROLLER, DATABASE_MANAGER = "katib-controller", "katib-db-manager"
RIGHTS: Rights = (
    (EXPERIMENTS, "", ("create", "get", "list", "watch", "delete")),
    (TRIALS, "", ("list", "watch")),
    (SUGGESTIONS, "", ("get", "list")),
    (JOBS, "", ("list",)),
)
LISTED_RIGHTS: Rights = ((EXPERIMENTS, "", ("patch",)),)  # to raise maxTrialCount


def katib_needs(options: KatibOptions, *, is_listed: bool) -> Needs:
    """Return what a run by Katib needs of its cluster. `is_listed`: its configurations are given, by `fixed` or `grid`."""
    reads: dict[str, Callable[[Connection], Object]] = {
        "group": lambda way: way.read(f"/apis/{KATIB_GROUP}"),
        "resources": lambda way: way.read(f"/apis/{KATIB_GROUP}/{KATIB_VERSION}"),
        **{name: _getting(DEPLOYMENTS, name, options.katib_namespace) for name in (CONTROLLER, DATABASE_MANAGER)},
        **{kind.plural: _getting(kind, WEBHOOKS) for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS)},
    }

    def judge(answers: Mapping[str, Any]) -> str | None:
        group, install = answers["group"], f"install Katib v0.19 (kubectl apply -k of its {MANIFESTS})"
        if isinstance(group, Missing):
            raise InfrastructureError(f"Katib is not installed: the API server has no group {KATIB_GROUP}; {install}")
        versions = [str(entry.get("version")) for entry in value(group).get("versions") or []]
        if KATIB_VERSION not in versions:
            raise InfrastructureError(
                f"Katib's API must be {KATIB_GROUP}/{KATIB_VERSION}, but the API server has "
                f"{', '.join(versions) or 'none'} of it; {install}"
            )
        plurals = {str(entry.get("name")) for entry in value(answers["resources"]).get("resources") or []}
        missing = [kind.full_name for kind in (EXPERIMENTS, TRIALS, SUGGESTIONS) if kind.plural not in plurals]
        if missing:
            raise InfrastructureError(
                f"Katib is not installed: the API server has no {', '.join(missing)} in {KATIB_VERSION}; {install}"
            )
        controller = _check_deployment(answers[CONTROLLER], CONTROLLER, options.katib_namespace, is_needed=True)
        _check_deployment(answers[DATABASE_MANAGER], DATABASE_MANAGER, options.katib_namespace, is_needed=False)
        for kind in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
            answer = answers[kind.plural]
            may_be_read = not (isinstance(answer, ApiError) and answer.status in (403, 404))
            for webhook in (value(answer).get("webhooks") or []) if may_be_read else ():
                if not webhook.get("clientConfig", {}).get("caBundle"):  # then no experiment can be created
                    raise InfrastructureError(
                        f"Katib's webhook {webhook.get('name')} has no certificate yet "
                        f"(caBundle is empty in {kind.plural}/{WEBHOOKS}); wait for katib-controller to write it, or restart it"
                    )
        if controller is None:
            return None
        containers = controller.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
        image = containers[0].get("image")
        return None if image is None else str(image)

    return Needs(
        is_own_namespace=options.namespace is None,
        namespace_labels=NAMESPACE_LABELS,
        rights=rights_of(options, (*RIGHTS, *LISTED_RIGHTS) if is_listed else RIGHTS),
        reads=reads,
        judge=judge,
    )


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
        message = (available or {}).get("message") or "it has no condition Available"
        raise InfrastructureError(
            f"Katib does not run: Deployment {namespace}/{name} is not available ({message}); "
            f"see: kubectl get events -n {namespace} (tuneoff explain docs/katib.md: Ends and failures)"
        )
    return deployment


def _getting(resource: ApiResource, name: str, namespace: str | None = None) -> Callable[[Connection], Object]:
    return lambda way: way.get(resource, name, namespace)
