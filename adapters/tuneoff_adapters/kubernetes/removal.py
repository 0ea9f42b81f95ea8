"""Un-deploy: ask for the end of all that an execution has made at once, wait until it is gone, and prove that nothing is left."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneoff.errors import InfrastructureError, StepError
from tuneoff_adapters.kubernetes.api_errors import ApiError, Missing, Unreachable, one_line
from tuneoff_adapters.kubernetes.connection import Connection, Propagation
from tuneoff_adapters.kubernetes.parallel_calls import at_once, value
from tuneoff_adapters.kubernetes.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EXPERIMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    SUGGESTIONS,
    TRIALS,
    ApiResource,
    Object,
    belongs_to,
    condition,
    conditions_of,
    labels_of,
    name_of,
    selector,
)

NOT_KATIBS = ("foregroundDeletion", "batch.kubernetes.io/job-tracking")  # finalizers that Kubernetes itself removes
_NAMED = 5  # objects that a line names
CHILDREN = (TRIALS, JOBS, PODS, SUGGESTIONS)  # what Katib makes for an experiment
SERVING = (DEPLOYMENTS, REPLICA_SETS, SERVICES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS)  # for the suggestion's service
LABELLED = (EXPERIMENTS, TRIALS, JOBS, PODS, CONFIG_MAPS)
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.5  # seconds between two requests: at most two per second in the long run
SLACK_SECONDS = 1.0  # for calls to give up themselves
LEAST_SECONDS = 1.0  # that any call may take, however late it is


StuckObject = tuple[ApiResource, Object]
"""An object that is still there."""


def finalizers_of(obj: Object) -> list[str]:
    return list(obj.get("metadata", {}).get("finalizers") or [])


def why(stuck: Sequence[StuckObject], namespace: Object | None) -> str:
    """Return what is left with what holds it, and what a namespace that is being deleted says of itself."""
    texts = []
    for resource, obj in stuck:
        state = "being deleted" if obj.get("metadata", {}).get("deletionTimestamp") else "not deleted yet"
        held = ", ".join(finalizers_of(obj))
        texts.append(f"{resource.full_name} {name_of(obj)} ({f'finalizers {held}' if held else state})")
    messages = [str(entry.get("message")) for entry in conditions_of(namespace or {}) if entry.get("status") == "True"]
    parts = [some(texts), " ".join(" ".join(messages).split())]
    return "; ".join(part for part in parts if part) or "the API server gives no reason"


def release(stuck: Sequence[StuckObject], namespace: str) -> str:
    """Return what to run where nobody is there to remove Katib's finalizers; empty where nothing waits for that."""
    held = [(kind, name_of(obj)) for kind, obj in stuck if any(name not in NOT_KATIBS for name in finalizers_of(obj))]
    if not held:
        return ""
    names = " ".join(name for kind, name in held if kind == held[0][0])
    return (
        f"; if Katib is not there to let go, run: kubectl patch {held[0][0].full_name} {names} -n {namespace} "
        """--type=merge -p '{"metadata":{"finalizers":null}}'"""
    )


def some(texts: Sequence[str]) -> str:
    """Return the first texts of a list, and how many more there are."""
    more = len(texts) - _NAMED
    return ", ".join(texts[:_NAMED]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObjects:
    """What an execution may have made, by its names; it is its own only with the labels."""

    namespace: str
    is_own_namespace: bool  # made by it; else it stays, and so does all in it that is not the execution's
    name: str  # of its experiment and its config map
    labels: Mapping[str, str]
    has_experiment: bool = True  # else Jobs alone, which the config map owns

    @property
    def text(self) -> str:
        return f"{'experiment' if self.has_experiment else 'run'} {self.name}"

    @property
    def children(self) -> tuple[ApiResource, ...]:
        """What is made of it, of which each is to be gone."""
        if not self.has_experiment:
            return (JOBS, PODS)
        # in its own namespace the namespace's end proves that the suggestion's service is gone
        return CHILDREN if self.is_own_namespace else (*CHILDREN, *SERVING)


def remove(connection: Connection, objects: RunObjects, within_seconds: float = 50.0, katib_namespace: str = "kubeflow") -> float:
    """Delete what an execution has made, wait until it is gone, and prove that nothing with its labels is left.

    Returns after how many seconds the experiment and all that Katib made for it were gone.

    Everything is asked for before anything is waited for, so what runs out of time here goes on in the cluster. Idempotent, and
    needs no more than the names. What has a name but not the labels is somebody else's, and stays.

    Raises:
        StepError: something is still there (named, with what holds it and the way out), or the API server is away.
    """
    start = time.monotonic()
    removal = _Removing(connection, objects, start, within_seconds)
    try:
        removal.ask(katib_namespace)
        removal.wait(removal.is_experiment_gone)
        experiment_seconds = time.monotonic() - start
        removal.wait(lambda: removal._find_rest() is None)
        removal.prove()
    except (ApiError, Unreachable, TimeoutError) as error:
        short = error.short if isinstance(error, ApiError | Unreachable) else one_line(error)
        problem = StepError if isinstance(error, ApiError) else InfrastructureError
        raise problem(
            f"un-deploy failed ({short}), so {objects.text} and {_whereabouts(objects)} may be left; "
            f"once it answers, run: {_deletion(objects)}"
        ) from error
    return experiment_seconds


def leftover_text(objects: RunObjects, host: str) -> str:
    """Return what the user is told where un-deploy has not come to its end, in one line."""
    return (
        f"{objects.text} and {_whereabouts(objects)} at {host}; "
        f"the next tuneoff command on these results removes them, or run: {_deletion(objects)}"
    )


class _Removing:
    def __init__(self, connection: Connection, objects: RunObjects, start: float, within: float) -> None:
        self._patient, self._objects, self._start, self._within = connection, objects, start, within
        self._namespace = objects.namespace
        self._is_taken = False  # somebody else's experiment has our name, and children that are called after it
        self._kinds = objects.children
        self._remaining = list(self._kinds)  # kinds of which something was there when last seen
        self._rest: tuple[ApiResource, str, str | None] = (NAMESPACES, objects.namespace, None)
        if not objects.is_own_namespace:
            self._rest = (CONFIG_MAPS, objects.name, objects.namespace)

    @property
    def _connection(self) -> Connection:
        """The connection, with no more patience than there is time."""
        remaining = max(self._start + self._within - time.monotonic(), LEAST_SECONDS)
        limits = self._patient.limits
        return self._patient.limited(replace(limits, api=min(limits.api, remaining)))

    def ask(self, katib_namespace: str) -> None:
        """Ask for the deletion of the experiment and, right after, of the namespace, or of the config map in somebody else's.

        In a namespace that is being deleted nothing can be made again, whoever takes its time to let the experiment go.
        """
        find = self._connection.find
        calls: dict[str, Callable[[], Any]] = {"experiment": self._find_experiment, "rest": self._find_rest}
        if self._objects.has_experiment:
            calls["controller"] = lambda: find(DEPLOYMENTS, "katib-controller", katib_namespace)
        answers = self._at_once(calls)
        experiment, rest = value(answers["experiment"]), value(answers["rest"])
        try:
            if experiment is not None:
                # Foreground takes the pods along even when nobody is there to remove Katib's finalizers; but under a living Katib
                # a running experiment would go on to make trials while it is held.
                ended = any(_is_true(experiment, kind) for kind in ("Succeeded", "Failed"))
                is_unseen = not conditions_of(experiment)  # no controller has ever seen it
                controller = answers["controller"]  # an error where it may not be read
                is_known = controller is not None and not isinstance(controller, Exception)
                is_away = is_known and not _is_true(controller, "Available")
                how: Propagation = "Foreground" if ended or is_unseen or is_away else "Background"
                self._connection.delete(EXPERIMENTS, self._objects.name, self._namespace, how)
        finally:  # whatever came of the first
            if rest is not None:
                self._connection.delete(*self._rest)

    def wait(self, is_gone: Callable[[], bool]) -> None:
        """Wait until it is.

        Raises:
            StepError: it is not in time; what is left is named.
        """
        deadline, pause, requests = self._start + self._within, FIRST_PAUSE, self._patient.requests
        while not is_gone():
            if time.monotonic() + pause > deadline:
                raise StepError(self._stuck_text())
            time.sleep(pause)
            requests, before = self._patient.requests, requests
            pause = min(2 * pause, (requests - before) * LONGEST_PAUSE)

    def is_experiment_gone(self) -> bool:
        """Tell whether the experiment is gone with all its children."""
        if self._find_experiment() is not None:
            return False
        children = self._at_once({resource.plural: functools.partial(self._children, resource) for resource in self._remaining})
        self._remaining = [resource for resource in self._remaining if value(children[resource.plural])]
        return not self._remaining

    def prove(self) -> None:
        """Look for whatever carries the labels: in the whole cluster where that may be read, or in the given namespace."""
        namespaces = (NAMESPACES,) if self._objects.is_own_namespace else ()
        kinds = (*namespaces, *(LABELLED if self._objects.has_experiment else (JOBS, PODS, CONFIG_MAPS)))
        answers = self._at_once({resource.full_name: functools.partial(self._labelled, resource) for resource in kinds})
        leftovers = []
        for name, answer in answers.items():
            for obj in value(answer):
                namespace = obj.get("metadata", {}).get("namespace")
                leftovers.append(f"{name} {namespace}/{name_of(obj)}" if namespace else f"{name} {name_of(obj)}")
        if leftovers:
            where = "-A" if self._objects.is_own_namespace else f"-n {self._namespace}"
            raise StepError(
                f"un-deploy left {some(leftovers)} with label {selector(self._objects.labels)}; see: "
                f"kubectl get {','.join(resource.plural for resource in kinds)} {where} -l {selector(self._objects.labels)}"
            )

    def _at_once(self, calls: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
        return at_once(calls, self._connection.limits.api + SLACK_SECONDS)

    def _find_experiment(self) -> Object | None:
        if not self._objects.has_experiment:
            return None
        experiment = self._connection.find(EXPERIMENTS, self._objects.name, self._namespace)
        self._is_taken = experiment is not None and self._ours(experiment) is None
        return self._ours(experiment)

    def _find_rest(self) -> Object | None:
        return self._ours(self._connection.find(*self._rest))

    def _ours(self, obj: Object | None) -> Object | None:
        """Return an object of a name that is ours, if it is: another one may have had the name first."""
        return obj if obj is not None and self._objects.labels.items() <= labels_of(obj).items() else None

    def _children(self, resource: ApiResource) -> list[Object]:
        """Return what Katib made for the experiment; nothing of a kind that may not be read."""
        try:
            items = self._connection.items(resource, self._namespace)
        except Missing:  # no such kind: Katib is gone
            return []
        except ApiError as error:
            if error.status != 403:
                raise
            return []
        name = None if self._is_taken else self._objects.name
        return [obj for obj in items if self._ours(obj) is not None or (name is not None and belongs_to(obj, name))]

    def _labelled(self, resource: ApiResource) -> list[Object]:
        where = None if self._objects.is_own_namespace else self._namespace
        try:
            return self._connection.items(resource, where, self._objects.labels)
        except ApiError as error:
            if error.status not in (403, 404):
                raise
            return []  # most users may not list the whole cluster; their own namespace is gone, which was seen

    def _stuck_text(self) -> str:
        """Return one line on what does not go away."""
        objects = self._objects
        lists = {resource.plural: functools.partial(self._children, resource) for resource in self._kinds}
        answers = self._at_once({"experiment": self._find_experiment, "rest": self._find_rest, **lists})
        experiment, rest = value(answers["experiment"]), value(answers["rest"])
        stuck = [(EXPERIMENTS, experiment)] if experiment is not None else []
        stuck += [(resource, obj) for resource in self._kinds for obj in value(answers[resource.plural])]
        if objects.is_own_namespace:
            problem = f"namespace {objects.namespace} is still terminating"
            see = f"kubectl get namespace {objects.namespace} -o yaml"
        else:
            stuck += [(CONFIG_MAPS, rest)] if rest is not None else []
            problem = f"{objects.text} is still being deleted in namespace {objects.namespace}"
            see = f"kubectl get experiments,trials,jobs,pods,configmaps -n {objects.namespace} -l {selector(objects.labels)}"
        reason = why(stuck, rest if objects.is_own_namespace else None)
        return (
            f"un-deploy: {problem} after {self._within:g} s: {reason}; all of it was asked to go, see: {see}"
            f"{release(stuck, objects.namespace)}; if it goes by and by, raise timeouts.undeploy_seconds"
        )


def _is_true(obj: Object, kind: str) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"


def _whereabouts(objects: RunObjects) -> str:
    return f"namespace {objects.namespace}" if objects.is_own_namespace else f"its config map in namespace {objects.namespace}"


def _deletion(objects: RunObjects) -> str:
    if objects.is_own_namespace:
        return f"kubectl delete namespace {objects.namespace}"
    kind = "experiments" if objects.has_experiment else "jobs"
    return f"kubectl delete {kind},configmaps -n {objects.namespace} -l {selector(objects.labels)}"
