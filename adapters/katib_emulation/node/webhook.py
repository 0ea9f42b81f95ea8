"""What Katib's pod webhook (v0.19) does to a trial's pod: labels, KATIB_TRIAL_NAME, the collector with its volume and shell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from katib_emulation.node.metrics import MetricFormat, StopRule
from katib_emulation.objects import Object, copied

CONTAINER = "metrics-logger-and-collector"
DEFAULT_PATH = "/var/log/katib/metrics.log"


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """What the collector of one trial does."""

    trial: str
    path: str  # of the metrics file, as the container sees it
    format: MetricFormat
    maximize: bool
    rules: tuple[StopRule, ...] = ()

    @property
    def directory(self) -> str:
        """The folder of the metrics file, where the marks of ended processes lie too."""
        return str(PurePosixPath(self.path).parent)

    @classmethod
    def of_trial(cls, trial: Mapping[str, Any]) -> CollectorSettings:
        """Return the settings that a Trial asks for."""
        spec = trial["spec"]
        source = spec["metricsCollector"].get("source") or {}
        objective = spec["objective"]
        return cls(
            trial=trial["metadata"]["name"],
            path=(source.get("fileSystemPath") or {}).get("path") or DEFAULT_PATH,
            format=MetricFormat(
                names=(objective["objectiveMetricName"], *(objective.get("additionalMetricNames") or ())),
                filters=tuple((source.get("filter") or {}).get("metricsFormat") or ()),
            ),
            maximize=objective.get("type") == "maximize",
            rules=tuple(
                StopRule(rule["name"], str(rule["value"]), rule["comparison"], int(rule.get("startStep") or 0))
                for rule in spec.get("earlyStoppingRules") or ()
            ),
        )

    def arguments(self) -> list[str]:
        """Return the arguments of the collector's container."""
        arguments = ["-t", self.trial, "-m", ";".join(self.format.names)]
        arguments += ["-o-type", "maximize" if self.maximize else "minimize", "-path", self.path]
        if self.format.filters:
            arguments += ["-f", ";".join(self.format.filters)]
        arguments += ["-format", "TEXT"]
        for rule in self.rules:
            arguments += ["-stop-rule", f"{rule.name};{rule.value};{rule.comparison};{rule.start_step}"]
        return arguments

    @classmethod
    def of_arguments(cls, arguments: Sequence[str]) -> CollectorSettings:
        """Read what `arguments` wrote."""
        pairs = list(zip(arguments[::2], arguments[1::2], strict=True))
        given = dict(pairs)

        filters = tuple(given["-f"].split(";")) if "-f" in given else ()
        rules = [value.split(";") for flag, value in pairs if flag == "-stop-rule"]
        return cls(
            trial=given["-t"],
            path=given["-path"],
            format=MetricFormat(tuple(given["-m"].split(";")), filters),
            maximize=given["-o-type"] == "maximize",
            rules=tuple(StopRule(name, value, comparison, int(step)) for name, value, comparison, step in rules),
        )


TRIAL_LABEL = "katib.kubeflow.org/trial"
COLLECTOR_IMAGE = "emulated/file-metrics-collector"
VOLUME = "metrics-volume"
COMPLETED = "completed"
EARLY_STOPPED = "early-stopped"


class InjectionError(Exception):
    """The webhook refuses the pod."""


def inject(pod: Object, trial: Mapping[str, Any]) -> Object:
    """Return the pod as the webhook changes it.

    Raises:
        InjectionError: it has no primary container, or one without a command (an image's entry point is not known here).
    """
    pod = copied(pod)
    name = trial["spec"]["primaryContainerName"]
    primary = next((container for container in pod["spec"]["containers"] if container["name"] == name), None)
    if primary is None:
        raise InjectionError(f"Unable to find primary container {name} in mutated pod containers")
    trial_name = trial["metadata"]["name"]
    labels = pod["metadata"].setdefault("labels", {})
    labels.update(trial["metadata"].get("labels") or {})
    labels[TRIAL_LABEL] = trial_name
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{TRIAL_LABEL}']"}}
    primary["env"] = [*(primary.get("env") or ()), {"name": "KATIB_TRIAL_NAME", "valueFrom": field}]
    is_output = trial["spec"]["metricsCollector"]["collector"]["kind"] == "StdOut"
    _add_collector(pod["spec"], primary, CollectorSettings.of_trial(trial), redirect=is_output)
    return pod


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
