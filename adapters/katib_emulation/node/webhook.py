"""What Katib's pod webhook (v0.19) does to a trial's pod: labels, KATIB_TRIAL_NAME, the collector with its volume and shell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from katib_emulation.node.collector_settings import CONTAINER, CollectorSettings
from katib_emulation.objects import Object, copied

TRIAL_LABEL = "katib.kubeflow.org/trial"
COLLECTOR_IMAGE = "emulated/file-metrics-collector"
VOLUME = "metrics-volume"
COMPLETED = "completed"
EARLY_STOPPED = "early-stopped"
DEFAULT_PRIMARY_CONTAINER = "training-container"


class InjectionError(Exception):
    """The webhook refuses the pod."""


def inject(pod: Object, trial: Mapping[str, Any]) -> Object:
    """Return the pod as the webhook changes it.

    Raises:
        InjectionError: it has no primary container, or one without a command (an image's entry point is not known here).
    """
    pod = copied(pod)
    name = trial["spec"].get("primaryContainerName") or DEFAULT_PRIMARY_CONTAINER
    primary = next((container for container in pod["spec"]["containers"] if container["name"] == name), None)
    if primary is None:
        raise InjectionError(f"Unable to find primary container {name} in mutated pod containers")
    trial_name = trial["metadata"]["name"]
    labels = pod["metadata"].setdefault("labels", {})
    labels.update(trial["metadata"].get("labels") or {})
    labels[TRIAL_LABEL] = trial_name
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{TRIAL_LABEL}']"}}
    primary["env"] = [*(primary.get("env") or ()), {"name": "KATIB_TRIAL_NAME", "valueFrom": field}]
    settings = CollectorSettings.of_trial(trial)
    if settings is not None and _is_primary(labels, trial["spec"].get("primaryPodLabels")):
        _add_collector(pod["spec"], primary, settings, redirect=_is_standard_output(trial))
    return pod


def _is_primary(labels: Mapping[str, str], wanted: Mapping[str, str] | None) -> bool:
    return all(labels.get(key) == value for key, value in (wanted or {}).items())


def _is_standard_output(trial: Mapping[str, Any]) -> bool:
    collector = (trial["spec"].get("metricsCollector") or {}).get("collector") or {}
    return (collector.get("kind") or "StdOut") == "StdOut"


def _add_collector(spec: Object, primary: Object, settings: CollectorSettings, redirect: bool) -> None:
    mount = {"name": VOLUME, "mountPath": settings.directory}
    collector = {"name": CONTAINER, "image": COLLECTOR_IMAGE, "args": settings.arguments(), "volumeMounts": [mount]}
    spec["containers"] = [*spec["containers"], collector]
    spec["shareProcessNamespace"] = True
    primary["volumeMounts"] = [*(primary.get("volumeMounts") or ()), dict(mount)]
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": VOLUME, "emptyDir": {}}]
    primary["command"], primary["args"] = _wrapped(primary, settings, redirect)


def _wrapped(primary: Object, settings: CollectorSettings, redirect: bool) -> tuple[list[str], list[str]]:
    """Return command and arguments of the shell that runs the container's own command, joined with blanks and unquoted."""
    words = [*(primary.get("command") or ())]
    if not words:
        raise InjectionError(f"the emulation knows no image's entry point: give `command` of container {primary['name']}")
    words += primary.get("args") or ()
    shell = ["sh", "-c"]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"]:
        shell, words = words[:2], words[2:]
    if redirect:
        words.append(f"1>{settings.path} 2>&1")
    mark = f"{settings.directory}/$$$$.pid"
    if settings.rules:
        # `$(...)` is left alone by the expansion of `$(NAME)` and of `$$`, so inside of it the process's number is `$$`.
        is_stopped = f"test -f {mark} && [ $(head -n 1 {settings.directory}/$$.pid) = {EARLY_STOPPED} ]"
        failed = "echo Training Container was Failed; exit 1"
        words += ["||", f"if {is_stopped}; then echo Training Container was Early Stopped; else {failed}; fi"]
    words += ["&&", f"echo {COMPLETED} > {mark}"]
    return shell, [" ".join(words)]
