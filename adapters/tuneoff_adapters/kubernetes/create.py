"""What an execution makes in the cluster, in a namespace of its own or in a given one, and why that may be refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from tuneoff.errors import InfrastructureError
from tuneoff_adapters.kubernetes.api_errors import ApiError, Conflict, Missing
from tuneoff_adapters.kubernetes.connection import Connection
from tuneoff_adapters.kubernetes.manifest import namespace_manifest
from tuneoff_adapters.kubernetes.plan import PodPlan
from tuneoff_adapters.kubernetes.removal import RunObjects
from tuneoff_adapters.kubernetes.resources import CONFIG_MAPS, EXPERIMENTS, NAMESPACES, ApiResource, Object, labels_of, selector

TERMINATING = "because it is being terminated"  # the API server's words; the status is 403


def objects_of(plan: PodPlan, has_experiment: bool = True) -> RunObjects:
    """Return what an execution makes, by name."""
    return RunObjects(
        namespace=plan.namespace,
        is_own_namespace=plan.is_own_namespace,
        name=plan.config_map,
        labels=plan.labels,
        has_experiment=has_experiment,
    )


def create_config_map(connection: Connection, plan: PodPlan, config_map: Object) -> Object:
    """Make the namespace, unless one is given, and the config map; return that as the server keeps it.

    Raises:
        InfrastructureError: something of that name is there already, or the namespace takes nothing.
    """
    if plan.is_own_namespace:
        with _readable(NAMESPACES, plan.namespace, plan):
            connection.create(NAMESPACES, namespace_manifest(plan))
    with _readable(CONFIG_MAPS, plan.config_map, plan):
        return connection.create(CONFIG_MAPS, config_map, plan.namespace)


def submit(connection: Connection, plan: PodPlan, experiment: Object) -> None:
    """Create the Experiment.

    Raises:
        InfrastructureError: there is an older one of its name, or the namespace takes nothing.
    """
    with _readable(EXPERIMENTS, plan.config_map, plan):
        connection.create_experiment(experiment)


def check_namespace(answer: Any, name: str, labels: Mapping[str, str]) -> None:
    """Check a given namespace (or what the API server answered in its place), before anything is made in it.

    `labels`: that Katib asks for.

    Raises:
        InfrastructureError: there is none, it is being deleted, or Katib would refuse an Experiment in it.
    """
    if isinstance(answer, Missing):
        raise _no_namespace(name, labels)
    if isinstance(answer, ApiError) and answer.status == 403:
        return  # it may not be read: what is made in it will tell
    if isinstance(answer, Exception):
        raise answer
    if answer.get("metadata", {}).get("deletionTimestamp") or answer.get("status", {}).get("phase") == "Terminating":
        raise _terminating(name)
    if not labels.items() <= labels_of(answer).items():
        raise InfrastructureError(
            f"namespace {name!r} lacks the label without which Katib refuses experiments in it; "
            f"run: kubectl label namespace {name} {selector(labels)}"
        )


@contextlib.contextmanager
def _readable(resource: ApiResource, name: str, plan: PodPlan) -> Iterator[None]:
    """Turn what the API server says on a create into what its user can do about it."""
    try:
        yield
    except Conflict as error:
        where = "" if resource is NAMESPACES else f" -n {plan.namespace}"
        raise InfrastructureError(
            f"there is already one of this run's name, and it is not of this run: {resource.full_name} {name}{where}; "
            "it stays as it is; run again: each execution has a new name"
        ) from error
    except Missing as error:
        if f'namespaces "{plan.namespace}" not found' not in error.message:
            raise
        raise _no_namespace(plan.namespace, plan.namespace_labels) from error
    except ApiError as error:
        if error.status != 403 or TERMINATING not in error.message:
            raise
        raise _terminating(plan.namespace) from error


def _no_namespace(name: str, labels: Mapping[str, str]) -> InfrastructureError:
    return InfrastructureError(
        f"namespace {name!r} does not exist; let someone make it{f' with label {selector(labels)}' if labels else ''}, "
        "set option `namespace` to another one, or leave it out: a run can make its own"
    )


def _terminating(name: str) -> InfrastructureError:
    return InfrastructureError(
        f"namespace {name!r} is being deleted, so nothing can be made in it; wait until it is gone "
        f"(kubectl wait --for=delete namespace/{name}) and make it again, or use another one"
    )
