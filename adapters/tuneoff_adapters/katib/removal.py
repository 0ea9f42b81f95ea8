"""Un-deploy: delete the experiment and the namespace, wait until both are gone, and prove that nothing is left."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tuneoff.errors import StepError
from tuneoff_adapters.katib.api_errors import ApiError, Missing, Unreachable
from tuneoff_adapters.katib.at_once import at_once, value
from tuneoff_adapters.katib.connection import Connection, Propagation
from tuneoff_adapters.katib.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EXPERIMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    SUGGESTIONS,
    TRIALS,
    Object,
    Resource,
    condition,
    conditions_of,
    name_of,
    selector,
)

CHILDREN = (TRIALS, JOBS, PODS, SUGGESTIONS)  # what Katib makes for an experiment, besides the suggestion's own service
LABELLED = (NAMESPACES, EXPERIMENTS, TRIALS, JOBS, PODS, CONFIG_MAPS)
EXPERIMENT_SHARE = 0.5  # of the time, for the experiment alone: deleting the namespace takes what then still hangs
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5  # seconds between two requests: at most two per second in the long run
SLACK_SECONDS = 1.0  # for calls to give up themselves
LEAST_SECONDS = 1.0  # that any call may take, however late it is
_NAMED = 5  # objects that an error names


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What un-deploying took, in seconds from its start."""

    experiment_seconds: float  # until the experiment and all that Katib made for it were gone
    total_seconds: float  # with the namespace, which takes a real cluster at least 5 s


def remove(
    connection: Connection,
    namespace: str,
    experiment: str,
    label: tuple[str, str],
    within_seconds: float = 50.0,
    katib_namespace: str = "kubeflow",
) -> Removal:
    """Delete an execution's experiment and namespace, wait until they are gone, and prove that nothing with its label is left.

    Idempotent, and needs no more than the names.

    Raises:
        StepError: something hangs (named, with what holds it and the way out), or the API server is away.
    """
    start = time.monotonic()
    removal = _Removing(connection, namespace, experiment, dict([label]), start, within_seconds)
    try:
        removal.delete_experiment(katib_namespace)
        experiment_seconds = time.monotonic() - start
        removal.delete_namespace()
        removal.prove()
    except (ApiError, Unreachable, TimeoutError) as error:
        raise StepError(
            f"un-deploy failed, so experiment {experiment} and namespace {namespace} may be left: {error}; "
            f"once it answers, run: kubectl delete namespace {namespace}"
        ) from error
    return Removal(experiment_seconds=experiment_seconds, total_seconds=time.monotonic() - start)


class _Removing:
    def __init__(
        self, connection: Connection, namespace: str, experiment: str, labels: Mapping[str, str], start: float, within: float
    ) -> None:
        self._patient, self._namespace, self._experiment, self._labels = connection, namespace, experiment, labels
        self._start, self._within = start, within

    @property
    def _connection(self) -> Connection:
        """The connection, with no more patience than there is time."""
        left = max(self._start + self._within - time.monotonic(), LEAST_SECONDS)
        limits = self._patient.limits
        return self._patient.limited(replace(limits, api=min(limits.api, left)))

    def delete_experiment(self, katib_namespace: str) -> None:
        """Delete the experiment, and wait for it and its children; what hangs is left to the namespace's deletion."""
        found = self._connection.find(EXPERIMENTS, self._experiment, self._namespace)
        if found is not None:
            self._connection.delete(EXPERIMENTS, self._experiment, self._namespace, self._propagation(found, katib_namespace))
        deadline = self._start + EXPERIMENT_SHARE * self._within
        if _until(lambda: self._connection.find(EXPERIMENTS, self._experiment, self._namespace) is None, deadline):
            self._wait_for_children(deadline)

    def delete_namespace(self) -> None:
        deadline = self._start + self._within
        self._connection.delete(NAMESPACES, self._namespace)
        if not _until(lambda: self._connection.find(NAMESPACES, self._namespace) is None, deadline):
            raise StepError(self._hanging())

    def prove(self) -> None:
        """Look for whatever carries the label, in the whole cluster where that may be read."""
        found = at_once(
            {resource.full_name: functools.partial(self._labelled, resource) for resource in LABELLED},
            self._connection.limits.api + SLACK_SECONDS,
        )
        left = [f"{name} {_place(obj)}" for name, answer in found.items() for obj in value(answer)]
        if left:
            raise StepError(
                f"un-deploy left {_some(left)} with label {selector(self._labels)}; see: "
                f"kubectl get namespaces,experiments,jobs,pods,configmaps -A -l {selector(self._labels)}"
            )

    def _propagation(self, experiment: Object, katib_namespace: str) -> Propagation:
        """Return how to delete. Foreground takes the pods along even when nobody is there to remove Katib's finalizers; but under
        a living Katib a running experiment would go on to make trials while it is held."""
        ended = any(_is_true(experiment, kind) for kind in ("Succeeded", "Failed"))
        if ended or not conditions_of(experiment):  # without any condition no controller has ever seen it
            return "Foreground"
        try:
            controller = self._connection.find(DEPLOYMENTS, "katib-controller", katib_namespace)
        except ApiError:  # it may not be read
            return "Background"
        return "Foreground" if controller is not None and not _is_true(controller, "Available") else "Background"

    def _items(self, resource: Resource) -> list[Object]:
        """Return what is in the namespace; nothing where it may not be read: the namespace's end will tell."""
        try:
            return self._connection.items(resource, self._namespace)
        except Missing:  # no such kind: Katib is gone
            return []
        except ApiError as error:
            if error.status != 403:
                raise
            return []

    def _wait_for_children(self, deadline: float) -> None:
        left = list(CHILDREN)

        def are_gone() -> bool:
            calls = {resource.plural: functools.partial(self._items, resource) for resource in left}
            answers = at_once(calls, self._connection.limits.api + SLACK_SECONDS)
            left[:] = [resource for resource in left if value(answers[resource.plural])]
            return not left

        _until(are_gone, deadline, len(CHILDREN) * LONGEST_PAUSE)

    def _labelled(self, resource: Resource) -> list[Object]:
        try:
            return self._connection.items(resource, None, self._labels)
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return []  # most users may not list the whole cluster; their own namespace is gone, which was seen

    def _hanging(self) -> str:
        """Return one line on why the namespace does not go away."""
        held = list(self._held())
        namespace = self._connection.find(NAMESPACES, self._namespace) or {}
        told = [str(entry.get("message")) for entry in conditions_of(namespace) if entry.get("status") == "True"]
        what = _some([f"{resource.full_name} {name} ({holder})" for resource, name, holder in held]) if held else ""
        why = "; ".join(part for part in (what, " ".join(" ".join(told).split())) if part) or "the API server gives no reason"
        finalized = next(((resource, name) for resource, name, holder in held if holder.startswith("finalizers")), None)
        way_out = f"kubectl describe namespace {self._namespace}"
        if finalized is not None:
            resource, name = finalized
            way_out = (
                f"kubectl patch {resource.full_name} {name} -n {self._namespace} --type=merge "
                """-p '{"metadata":{"finalizers":null}}'"""
            )
        return (
            f"un-deploy: namespace {self._namespace} is not gone after {self._within:g} s: {why}; "
            f"if Katib is not there to let go, run: {way_out}"
        )

    def _held(self) -> Iterator[tuple[Resource, str, str]]:
        """Yield what is left in the namespace: resource, name, what holds it."""
        for resource in (EXPERIMENTS, *CHILDREN):
            for obj in self._items(resource):
                finalizers = obj.get("metadata", {}).get("finalizers") or []
                state = "being deleted" if obj.get("metadata", {}).get("deletionTimestamp") else "not deleted yet"
                yield resource, name_of(obj), f"finalizers {', '.join(finalizers)}" if finalizers else state


def _until(is_so: Callable[[], bool], deadline: float, longest_pause: float = LONGEST_PAUSE) -> bool:
    """Look until it is so, or until the deadline; return whether it is."""
    pause = FIRST_PAUSE
    while not is_so():
        if time.monotonic() + pause > deadline:
            return False
        time.sleep(pause)
        pause = min(2 * pause, longest_pause)
    return True


def _is_true(obj: Object, kind: str) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"


def _place(obj: Object) -> str:
    namespace = obj.get("metadata", {}).get("namespace")
    return f"{namespace}/{name_of(obj)}" if namespace else name_of(obj)


def _some(texts: list[str]) -> str:
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
