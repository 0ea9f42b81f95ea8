"""A trial's metrics: what Katib's pod webhook puts into its pod, what the collector reads, and when it stops the trial.

As Katib's sidecar (v0.19), without its delays: it ends when the training has.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from katib_emulation.admission import DEFAULT_PATH
from katib_emulation.objects import Object, StatusError, copied
from katib_emulation.processes import ProcessGroup, children_of

CONTAINER = "metrics-logger-and-collector"
POD_WEBHOOK = "mutator.pod.katib.kubeflow.org"
DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
TRIAL_LABEL = "katib.kubeflow.org/trial"
COMPLETED, EARLY_STOPPED = "completed", "early-stopped"  # what stands in the mark of an ended process
UNAVAILABLE = "unavailable"
"""The value that the collector reports for an objective that is not in the metrics file."""

ZERO_TIME = "0001-01-01T00:00:00Z"
"""The time of a line without a time."""


class Observation(NamedTuple):
    """One value of one metric of a trial. `time` is RFC 3339, `value` what was in the file: it may be empty, or no number."""

    time: str
    name: str
    value: str


class Observations:
    """What all trials reported, by trial name alone (as in Katib: names must be unique over all namespaces): Katib's database."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, list[Observation]] = {}

    def report(self, trial: str, lines: Sequence[Observation]) -> None:
        """Add observations to those that the trial has."""
        with self._lock:
            self._lines.setdefault(trial, []).extend(lines)

    def read(self, trial: str) -> list[Observation]:
        """Return the trial's observations by time (equal times in order of report)."""
        with self._lock:
            return sorted(self._lines.get(trial, ()), key=lambda line: moment(line.time) or datetime.min.replace(tzinfo=UTC))

    def delete(self, trial: str) -> None:
        """Forget a trial; one that has none is not an error."""
        with self._lock:
            self._lines.pop(trial, None)


def moment(text: str) -> datetime | None:
    """Return the time that an RFC 3339 text names, cut to microseconds (what Katib's database keeps); None for any other text."""
    with contextlib.suppress(ValueError, OverflowError):  # no such day or hour; or before year 1 in UTC
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo is not None and "T" in text else None
    return None


def number(text: str) -> float | None:
    """Return the number in a text, None if it has none."""
    with contextlib.suppress(ValueError):
        return float(text)
    return None


def observe(lines: Iterable[Observation], strategies: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return the observation over the metrics that have a strategy; `unavailable` where there is no value. Lines are by time."""
    metrics = {s["name"]: {"name": s["name"], "min": UNAVAILABLE, "max": UNAVAILABLE, "latest": UNAVAILABLE} for s in strategies}
    for line in lines:
        metric = metrics.get(line.name)
        if metric is None:
            continue
        metric["latest"] = line.value
        value = number(line.value)
        if value is None:
            continue
        if metric["min"] == UNAVAILABLE:
            metric["min"] = metric["max"] = line.value
        elif value < float(metric["min"]):
            metric["min"] = line.value
        elif value > float(metric["max"]):
            metric["max"] = line.value
    return {"metrics": [{name: value for name, value in metric.items() if value} for metric in metrics.values()]}


def is_available(trial: Mapping[str, Any]) -> bool:
    """Whether the objective has a latest value (an empty one counts)."""
    objective = trial["spec"]["objective"]["objectiveMetricName"]
    metrics = ((trial.get("status") or {}).get("observation") or {}).get("metrics", ())
    return any(metric["name"] == objective and metric.get("latest", "") != UNAVAILABLE for metric in metrics)


class CollectorError(Exception):
    """The collector ends with an error, and with it the pod: the text is the last line of its log."""


class StopRule:
    """The rule of `medianstop` for one trial: stop if the best value so far is worse than `bound` at report number `step`.

    It is tested exactly once, at that report of its metric, by the best value so far, not by the value of that report: a trial
    that was good before, or that passes the test, is never stopped.
    """

    def __init__(self, rule: Mapping[str, Any]) -> None:
        self.name: str = rule["name"]
        self._bound, self._step = str(rule["value"]), int(rule.get("startStep") or 1)
        self._sign = 1 if rule["comparison"] == "less" else -1  # less: the metric is maximized
        self._best, self._reports = float("-inf"), 0

    def is_met(self, value: float) -> bool:
        """Take in one report; return whether the trial has to stop.

        Raises:
            CollectorError: the bound is not a number.
        """
        self._best, self._reports = max(self._best, self._sign * value), self._reports + 1
        return self._reports == self._step and self._best < self._sign * _parsed(self._bound, f"rule metric {self.name}")


def _parsed(text: str, name: str) -> float:
    value = number(text)
    if value is None:
        raise CollectorError(f"Unable to parse value {text} to float for metric {name}")
    return value


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """What the collector of one trial does, and how it reads a metrics file."""

    trial: str
    names: tuple[str, ...]  # of the metrics, the objective first
    path: str = DEFAULT_PATH  # of the metrics file, as the container sees it
    filters: tuple[str, ...] = (DEFAULT_FILTER,)
    rules: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of_trial(cls, trial: Mapping[str, Any]) -> CollectorSettings:
        """Return the settings that a Trial asks for."""
        spec, objective = trial["spec"], trial["spec"]["objective"]
        source = spec["metricsCollector"].get("source") or {}
        return cls(
            trial=trial["metadata"]["name"],
            names=(objective["objectiveMetricName"], *(objective.get("additionalMetricNames") or ())),
            path=(source.get("fileSystemPath") or {}).get("path") or DEFAULT_PATH,
            filters=tuple((source.get("filter") or {}).get("metricsFormat") or (DEFAULT_FILTER,)),
            rules=tuple(spec.get("earlyStoppingRules") or ()),
        )

    @property
    def directory(self) -> str:
        """The folder of the metrics file, where the marks of ended processes lie too."""
        return str(PurePosixPath(self.path).parent)

    def observations(self, content: str) -> list[Observation]:
        """Return what is reported to the database: all values, or one `unavailable` where the objective is missing."""
        lines = []
        for line in content.split("\n"):
            first, blank, _ = line.partition(" ")
            time = first if blank and moment(first) is not None else ZERO_TIME
            lines += [Observation(time, name, value) for name, value in self._matches(line, self.names) if name in self.names]
        missing = [Observation(ZERO_TIME, self.names[0], UNAVAILABLE)]
        return lines if any(line.name == self.names[0] for line in lines) else missing

    def values(self, line: str, name: str) -> list[tuple[str, float]]:
        """Return (name, value) for a line of the growing file, as the rule on a metric sees it: any name of a line with its own.

        Raises:
            CollectorError: a value is not a number (the default filter reads `nan` and `inf` as empty).
        """
        return [(name, _parsed(value, name)) for name, value in self._matches(line, (name,))]

    def _matches(self, line: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
        for pattern in self.filters if any(name in line for name in names) else ():
            for match in re.finditer(pattern, line, re.ASCII):
                yield (match[1] or "").strip(), (match[2] or "").strip()


def inject(pod: Object, trial: Mapping[str, Any]) -> Object:
    """Return the pod of a trial as Katib's webhook changes it: labels, KATIB_TRIAL_NAME, the collector with its volume and shell.

    Raises:
        StatusError: 400, it has no primary container.
    """
    pod, settings, name = copied(pod), CollectorSettings.of_trial(trial), trial["spec"]["primaryContainerName"]
    primary = next((container for container in pod["spec"]["containers"] if container["name"] == name), None)
    if primary is None:
        raise StatusError.denied(f"Unable to find primary container {name} in mutated pod containers", POD_WEBHOOK)
    labels = {**(trial["metadata"].get("labels") or {}), TRIAL_LABEL: settings.trial}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
    mount = {"name": "metrics-volume", "mountPath": settings.directory}
    arguments = ["-t", settings.trial, "-m", ";".join(settings.names), "-path", settings.path]
    collector = {"name": CONTAINER, "image": "emulated/file-metrics-collector", "args": arguments, "volumeMounts": [mount]}
    pod["spec"]["containers"].append(collector)
    pod["spec"]["shareProcessNamespace"] = True
    pod["spec"]["volumes"] = [*(pod["spec"].get("volumes") or ()), {"name": "metrics-volume", "emptyDir": {}}]
    primary["volumeMounts"] = [*(primary.get("volumeMounts") or ()), mount]
    primary["env"] = [*(primary.get("env") or ()), {"name": "KATIB_TRIAL_NAME", "value": settings.trial}]
    words = [*primary["command"], *(primary.get("args") or ())]  # joined with blanks and unquoted, they are what a shell runs
    primary["command"] = ["sh", "-c"]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"]:
        primary["command"], words = words[:2], words[2:]
    if trial["spec"]["metricsCollector"]["collector"]["kind"] == "StdOut":
        words.append(f"1>{settings.path} 2>&1")
    mark = f"{settings.directory}/$$$$.pid"
    if settings.rules:
        # `$(...)` is left alone by the expansion of `$(NAME)` and of `$$`, so inside of it the process's number is `$$`.
        is_stopped = f"test -f {mark} && [ $(head -n 1 {settings.directory}/$$.pid) = {EARLY_STOPPED} ]"
        failed = "echo Training Container was Failed; exit 1"
        words += ["||", f"if {is_stopped}; then echo Training Container was Early Stopped; else {failed}; fi"]
    primary["args"] = [" ".join([*words, "&&", f"echo {COMPLETED} > {mark}"])]
    return pod


class Collector:
    """One trial's collector at work. Used by the one thread that runs the pod.

    Args:
        metrics_file: the file on this machine.
        log: of the collector's container.
    """

    def __init__(self, settings: CollectorSettings, metrics_file: Path, log: Path, reports: Observations) -> None:
        self.is_stopping = False
        self.trial = settings.trial
        self._settings, self._metrics_file, self._log, self._reports = settings, metrics_file, log, reports
        self._failure: str | None = None
        self.rule = StopRule(settings.rules[0]) if settings.rules else None  # medianstop makes one at most
        self._offset = 0

    def look(self, training: ProcessGroup) -> None:
        """Apply the rule to the new lines; when it is met, stop the training and report what it has."""
        rule = self.rule
        if rule is None:
            return
        with self._failing():
            content = b""
            with contextlib.suppress(FileNotFoundError), self._metrics_file.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
            complete = content[: content.rfind(b"\n") + 1]
            self._offset += len(complete)
            for line in complete.decode(errors="replace").split("\n")[:-1]:
                values = self._settings.values(line, rule.name)
                if True in [rule.is_met(value) for name, value in values if name == rule.name]:
                    self._stop(training)
                    break

    def finish(self, training: ProcessGroup) -> int:
        """After the training has ended: report its metrics if it completed; return the collector's exit code.

        A trial that was stopped has reported already, but the shell's mark has to say that it completed too.
        """
        with self._failing():
            if self._failure is None:
                content = self._mark(training).read_text().strip()
                if content != COMPLETED:
                    raise CollectorError(
                        f"training container is failed, unable to find marker: {COMPLETED} in contents: {content}"
                    )
                if not self.is_stopping:
                    self._report()
        return 0 if self._failure is None else 255

    def _stop(self, training: ProcessGroup) -> None:
        self._mark(training).write_text(EARLY_STOPPED)
        children = children_of(training.pid)
        if len(children) != 1:
            raise CollectorError(f"Multiple children processes are not supported. Children processes: {children}")
        os.kill(children[0], signal.SIGTERM)
        self.is_stopping, self.rule = True, None
        self._report()

    def _report(self) -> None:
        content = self._metrics_file.read_bytes().decode(errors="replace")
        self._reports.report(self.trial, self._settings.observations(content))

    def _mark(self, training: ProcessGroup) -> Path:
        return self._metrics_file.parent / f"{training.pid}.pid"

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Let an error within end the collector's work: the text is the last line of its log."""
        try:
            yield
        except (CollectorError, OSError) as error:
            self._failure, self.rule = str(error), None
            with contextlib.suppress(OSError), self._log.open("a") as log:  # the disk is full: the exit code says the rest
                log.write(f"{self._failure}\n")
