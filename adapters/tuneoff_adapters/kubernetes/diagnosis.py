"""Why a run does not go on: from the cluster's objects to one line with the object, its reason and its message.

Katib itself only ever says `Running`. Pure functions of plain objects: no request, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tuneoff.base.processes import ended as how_ended
from tuneoff_adapters.kubernetes.api_errors import one_line
from tuneoff_adapters.kubernetes.layout import CONTAINER
from tuneoff_adapters.kubernetes.resources import (
    COLLECTOR,
    JOB_NAME_LABELS,
    Object,
    condition,
    containers,
    exit_of,
    has,
    has_ended,
    is_running,
    is_unschedulable,
    labels_of,
    name_of,
    phase_of,
    terminal,
)

FINAL_REASONS = ("InvalidImageName", "ErrImageNeverPull")  # of a waiting container: another try would not help
QUIET_REASONS = ("ContainerCreating", "PodInitializing")  # the ordinary way to a start
PULLING = "ErrImagePull"
NODE_LOST = "NodeNotReady"  # an event of each pod of a node whose kubelet has been silent for 40 s or more
_SAME = {"ImagePullBackOff": PULLING}  # one cause, two names in turns
_WORDS = 400  # characters of a message


@dataclass(frozen=True, slots=True)
class PodObstacle:
    """One reason why a run does not go on. `is_final`: no waiting will change it; else it counts once it lasts."""

    subject: str  # kind and name, e.g. "pod r-1-abcd"
    reason: str
    message: str
    way_out: str
    is_final: bool = False

    @property
    def line(self) -> str:
        """The obstacle as an error's text."""
        message = one_line(self.message)
        if len(message) > _WORDS:
            message = f"{message[:_WORDS]}..."
        return f"{self.subject}: {self.reason}{': ' if message else ''}{message.rstrip('.;')}; {self.way_out}"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What is known of a run's objects, read at about the same time."""

    experiment: Object | None = None
    suggestion: Object | None = None
    trials: Mapping[str, Object] = field(default_factory=dict)  # by name
    pods: Mapping[str, Object] = field(default_factory=dict)  # by name, those of the suggestion service too
    events: Sequence[Object] = ()  # warnings alone, the newest last


def obstacles(view: ClusterView) -> list[PodObstacle]:
    """Return every reason that is seen, the most telling first."""
    candidates = [failed_experiment(view)]
    if view.suggestion is not None and has(view.suggestion, "Failed"):  # it refused the algorithm or the space
        candidates.append(_refused_settings(view.suggestion))
    candidates += [waiting_pod(pod, view.events) for pod in view.pods.values()]
    candidates += [hanging_collector(pod, view.trials.get(trial_of(pod))) for pod in view.pods.values()]
    candidates += [trial_without_pod(trial, view) for trial in view.trials.values()]
    candidates += [trial_without_end(trial, view) for trial in view.trials.values()]
    candidates += [silent_controller(view), unready_suggestion(view), no_more_trials(view)]
    return [obstacle for obstacle in candidates if obstacle is not None]


def failed_experiment(view: ClusterView) -> PodObstacle | None:
    """Katib gave the experiment up; the real cause stands in the suggestion, not here."""
    if view.experiment is None or not has(view.experiment, "Failed"):
        return None
    if view.suggestion is not None and has(view.suggestion, "Failed"):
        return _refused_settings(view.suggestion)
    reason, message = _words_of(condition(view.experiment, "Failed"), "Failed")
    is_final = "Suggestion" not in message  # else the suggestion's own words are still on their way
    return PodObstacle(f"experiment {name_of(view.experiment)}", reason, message, "see Katib's controller", is_final)


def _refused_settings(suggestion: Object) -> PodObstacle:
    words = _words_of(condition(suggestion, "Failed"), "SuggestionFailed")
    return PodObstacle(f"suggestion {name_of(suggestion)}", *words, "change the sampler or its options", is_final=True)


def waiting_pod(pod: Object, events: Iterable[Object] = ()) -> PodObstacle | None:
    """The pod has no node, no image, a configuration that cannot be made, or does not start; or its node is lost."""
    subject = f"pod {name_of(pod)}"
    reason, message = _words_of(latest(events, "Pod", name_of(pod)), "Pending", "no node has started it")
    if phase_of(pod) != "Pending":
        is_lost = reason == NODE_LOST and not has_ended(pod) and not has(pod, "Ready")
        return PodObstacle(subject, reason, message, "bring its node back, or delete the node") if is_lost else None
    for name, state in containers(pod):
        waiting = state.get("waiting") or {}
        held = str(waiting.get("reason") or "")
        if not held or held in QUIET_REASONS:
            continue
        is_pull = held in (PULLING, "ImagePullBackOff", *FINAL_REASONS)
        way_out = "make the image reachable from the nodes" if is_pull else "fix what the container needs"
        message = f"container {name}: {waiting.get('message') or ''}"
        return PodObstacle(subject, _SAME.get(held, held), message, way_out, is_final=held in FINAL_REASONS)
    if is_unschedulable(pod):
        words = _words_of(condition(pod, "PodScheduled"), "Unschedulable")
        return PodObstacle(subject, *words, "ask for fewer or smaller workers, or give the cluster room")
    return PodObstacle(subject, reason, message, "see its events")


def hanging_collector(pod: Object, trial: Object | None = None) -> PodObstacle | None:
    """Training has ended, but the collector has not: it waits for the database manager, or for the process list.

    Where its trial has ended for Katib, nothing waits for the collector.
    """
    if trial is not None and terminal(trial) is not None:
        return None
    if has_ended(pod) or exit_of(pod, CONTAINER) is None or not is_running(pod, COLLECTOR):
        return None
    message = f"container {COLLECTOR} goes on although training has ended"
    return PodObstacle(f"pod {name_of(pod)}", "CollectorRunning", message, "see katib-db-manager and the collector's log")


def died_collector(pod: Object) -> str | None:
    """Return why Katib counts a trial as failed whose training ended well: its collector did not; else None."""
    training, collector = exit_of(pod, CONTAINER), exit_of(pod, COLLECTOR)
    if training is None or collector is None or training.code != 0 or collector.code == 0:
        return None
    words = one_line(collector.message) or collector.reason
    return f"pod {name_of(pod)}: container {COLLECTOR} {how_ended(collector.code)} ({words}) though training ended well"


def trial_without_pod(trial: Object, view: ClusterView) -> PodObstacle | None:
    """No pod is made for a trial: a quota, a rule of the namespace, a webhook, or a job that the server refuses."""
    name = name_of(trial)
    if terminal(trial) is not None or any(trial_of(pod) == name for pod in view.pods.values()):
        return None
    event = latest(view.events, "Job", name) or latest(view.events, "Trial", name)
    state = "running" if has(trial, "Running") else "created"
    words = _words_of(event, "NoPod", f"its trial is {state}, but has no pod; no event says why")
    way_out = "make room in the namespace, or fix the rule that forbids the pod"
    return PodObstacle(f"job {name}", *words, "see the controllers of Kubernetes and Katib" if event is None else way_out)


def trial_without_end(trial: Object, view: ClusterView) -> PodObstacle | None:
    """The pod has ended, but Katib does not end the trial: its metrics have not reached the database."""
    name = name_of(trial)
    pods = [pod for pod in view.pods.values() if trial_of(pod) == name]
    if terminal(trial) is not None or not pods or not all(has_ended(pod) for pod in pods):
        return None
    words = _words_of(latest(view.events, "Trial", name), "NoEnd", "its pod has ended, but Katib does not end the trial")
    return PodObstacle(f"trial {name}", *words, "see katib-controller and katib-db-manager")


def silent_controller(view: ClusterView) -> PodObstacle | None:
    """The experiment has no status: nobody looks at it."""
    if view.experiment is None or view.experiment.get("status"):
        return None
    message = "Katib's controller has not looked at it"
    return PodObstacle(f"experiment {name_of(view.experiment)}", "NoStatus", message, "see whether katib-controller runs")


def unready_suggestion(view: ClusterView) -> PodObstacle | None:
    """No trial yet, because the suggestion service is not ready; its pod or its replica set says why."""
    if view.trials or view.experiment is None or not view.experiment.get("status") or terminal(view.experiment) is not None:
        return None
    suggestion = view.suggestion or {}
    refused = next((event for event in reversed(view.events) if about(event).get("kind") in ("ReplicaSet", "Deployment")), None)
    sign = refused or latest(view.events, "Suggestion", name_of(suggestion))
    if sign is None and not has(suggestion, "DeploymentReady"):
        sign = condition(suggestion, "DeploymentReady")
    words = _words_of(sign, "NotReady", "it has suggested no trial")
    return PodObstacle(f"suggestion {name_of(view.suggestion or view.experiment)}", *words, "see the suggestion's deployment")


def no_more_trials(view: ClusterView) -> PodObstacle | None:
    """Every trial has ended, the experiment has not: the suggestion service gives no further one (an exhausted space)."""
    if view.experiment is None or terminal(view.experiment) is not None or not view.trials:
        return None
    if any(terminal(trial) is None for trial in view.trials.values()):
        return None
    for trial in view.trials.values():
        metrics = ((trial.get("status") or {}).get("observation") or {}).get("metrics") or []  # of its objective, the only one
        if has(trial, "EarlyStopped") and all(metric.get("latest") == "unavailable" for metric in metrics):
            return PodObstacle(
                f"trial {name_of(trial)}",
                "MetricsUnavailable",
                "it was pruned, and Katib makes no further trial before its metrics are there",
                "see whether the image has the command `head`, which Katib runs then",
            )
    event = latest(view.events, "Suggestion", name_of(view.suggestion or {}))
    reason, message = _words_of(event or latest(view.events, "Experiment", name_of(view.experiment)), "NoMoreTrials")
    message = f"{len(view.trials)} trials have ended and no further one comes{message and f': {message}'}"
    subject = f"suggestion {name_of(view.suggestion or view.experiment)}"
    return PodObstacle(subject, reason, message, "the space may be exhausted: ask for fewer trials")


def _words_of(entry: Object | None, reason: str, message: str = "") -> tuple[str, str]:
    """Return the reason and the message of a condition or an event, or what stands for one that is missing."""
    entry = entry or {}
    return str(entry.get("reason") or reason), str(entry.get("message") or message)


def trial_of(pod: Object) -> str:
    """Return the name of the trial that a pod belongs to: its job has the trial's name; "" for other pods."""
    labels = labels_of(pod)
    return next((str(labels[key]) for key in JOB_NAME_LABELS if labels.get(key)), "")


def latest(events: Iterable[Object], kind: str, name: str) -> Object | None:
    """Return the newest event about an object, or None."""
    return next(
        (event for event in reversed(list(events)) if (about(event).get("kind"), about(event).get("name")) == (kind, name)), None
    )


def moment_of(event: Object) -> str:
    """Return when an event was last seen (RFC 3339): the scheduler's have `eventTime` alone, others `lastTimestamp`."""
    created = event.get("metadata", {}).get("creationTimestamp")
    return str(event.get("eventTime") or event.get("lastTimestamp") or created or "")


def about(event: Object) -> Object:
    """Return what an event is about: a reference to an object."""
    return event.get("involvedObject") or {}
