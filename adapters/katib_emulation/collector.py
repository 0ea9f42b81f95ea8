"""Katib's metrics collector (v0.19): what its pod webhook puts into a trial's pod, what it reads, and when it stops a trial.

As Katib's sidecar, without its delays: it looks when the metrics file has changed, and ends when the training has.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from katib_emulation.errors import StorageError, denied
from katib_emulation.objects import Object, copied
from katib_emulation.observations import UNAVAILABLE, ZERO_TIME, Observation, Observations, moment
from katib_emulation.processes import FileWatch, ProcessGroup

CONTAINER = "metrics-logger-and-collector"
POD_WEBHOOK = "mutator.pod.katib.kubeflow.org"
DEFAULT_FILTER = r"([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)"
DEFAULT_PATH = "/var/log/katib/metrics.log"
TRIAL_LABEL = "katib.kubeflow.org/trial"
VOLUME = "metrics-volume"
COMPLETED, EARLY_STOPPED = "completed", "early-stopped"  # what stands in the mark of an ended process
EXIT_CODE_OF_FAILURE = 255


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


@dataclass(frozen=True, slots=True)
class MetricFormat:
    """How a metrics file is read. `names`: the objective first."""

    names: tuple[str, ...]
    filters: tuple[str, ...] = ()

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
        for pattern in self.filters or (DEFAULT_FILTER,) if any(name in line for name in names) else ():
            for match in re.finditer(pattern, line, re.ASCII):
                yield (match[1] or "").strip(), (match[2] or "").strip()


def _parsed(text: str, name: str) -> float:
    try:
        return float("no number" if "_" in text else text)
    except ValueError:
        raise CollectorError(f"Unable to parse value {text} to float for metric {name}") from None


@dataclass(frozen=True, slots=True)
class CollectorSettings:
    """What the collector of one trial does."""

    trial: str
    path: str  # of the metrics file, as the container sees it
    format: MetricFormat
    rules: tuple[Mapping[str, Any], ...] = ()

    @property
    def directory(self) -> str:
        """The folder of the metrics file, where the marks of ended processes lie too."""
        return str(PurePosixPath(self.path).parent)

    @classmethod
    def of_trial(cls, trial: Mapping[str, Any]) -> CollectorSettings:
        """Return the settings that a Trial asks for."""
        spec, objective = trial["spec"], trial["spec"]["objective"]
        source = spec["metricsCollector"].get("source") or {}
        names = (objective["objectiveMetricName"], *(objective.get("additionalMetricNames") or ()))
        return cls(
            trial=trial["metadata"]["name"],
            path=(source.get("fileSystemPath") or {}).get("path") or DEFAULT_PATH,
            format=MetricFormat(names, tuple((source.get("filter") or {}).get("metricsFormat") or ())),
            rules=tuple(spec.get("earlyStoppingRules") or ()),
        )


def inject(pod: Object, trial: Mapping[str, Any]) -> Object:
    """Return the pod of a trial as Katib's webhook changes it: labels, KATIB_TRIAL_NAME, the collector with its volume and shell.

    Raises:
        StatusError: 400, it has no primary container, or one without a command (an image's entry point is not known here).
    """
    pod, settings, name = copied(pod), CollectorSettings.of_trial(trial), trial["spec"]["primaryContainerName"]
    primary = next((container for container in pod["spec"]["containers"] if container["name"] == name), None)
    if primary is None:
        raise denied(f"Unable to find primary container {name} in mutated pod containers", POD_WEBHOOK)
    labels = {**(trial["metadata"].get("labels") or {}), TRIAL_LABEL: settings.trial}
    pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), **labels}
    mount = {"name": VOLUME, "mountPath": settings.directory}
    arguments = ["-t", settings.trial, "-m", ";".join(settings.format.names), "-path", settings.path]
    collector = {"name": CONTAINER, "image": "emulated/file-metrics-collector", "args": arguments, "volumeMounts": [mount]}
    pod["spec"]["containers"].append(collector)
    pod["spec"]["shareProcessNamespace"] = True
    pod["spec"]["volumes"] = [*(pod["spec"].get("volumes") or ()), {"name": VOLUME, "emptyDir": {}}]
    primary["volumeMounts"] = [*(primary.get("volumeMounts") or ()), mount]
    primary["env"] = [*(primary.get("env") or ()), {"name": "KATIB_TRIAL_NAME", "value": settings.trial}]
    primary["command"], primary["args"] = _wrapped(primary, settings, trial["spec"]["metricsCollector"]["collector"]["kind"])
    return pod


def _wrapped(primary: Object, settings: CollectorSettings, kind: str) -> tuple[list[str], list[str]]:
    """Return command and arguments of the shell that runs the container's own command, joined with blanks and unquoted."""
    words = [*(primary.get("command") or ())]
    if not words:
        raise denied(f"the emulation knows no entry point: give `command` of container {primary['name']}", POD_WEBHOOK)
    words += primary.get("args") or ()
    shell = ["sh", "-c"]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"]:
        shell, words = words[:2], words[2:]
    if kind == "StdOut":
        words.append(f"1>{settings.path} 2>&1")
    mark = f"{settings.directory}/$$$$.pid"
    if settings.rules:
        # `$(...)` is left alone by the expansion of `$(NAME)` and of `$$`, so inside of it the process's number is `$$`.
        is_stopped = f"test -f {mark} && [ $(head -n 1 {settings.directory}/$$.pid) = {EARLY_STOPPED} ]"
        failed = "echo Training Container was Failed; exit 1"
        words += ["||", f"if {is_stopped}; then echo Training Container was Early Stopped; else {failed}; fi"]
    words += ["&&", f"echo {COMPLETED} > {mark}"]
    return shell, [" ".join(words)]


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
        self._rule = StopRule(settings.rules[0]) if settings.rules else None  # medianstop makes one at most
        self.watch = FileWatch(metrics_file.parent) if settings.rules else None
        self._offset = 0

    def look(self, training: ProcessGroup) -> None:
        """Apply the rule to the new lines; when it is met, stop the training and report what it has."""
        rule = self._rule
        if self.watch is None or rule is None:
            return
        self.watch.drain()
        try:
            for line in self._new_lines():
                values = self._settings.format.values(line, rule.name)
                met_rules = [rule.is_met(value) for name, value in values if name == rule.name]
                if True in met_rules:
                    self._stop(training)
                    break
        except (CollectorError, OSError, StorageError) as error:
            self._fail(str(error))

    def finish(self, training: ProcessGroup) -> int:
        """After the training has ended: report its metrics if it completed; return the collector's exit code.

        A trial that was stopped has reported already, but the shell's mark has to say that it completed too.
        """
        try:
            if self._failure is None:
                self._check_mark(training)
                if not self.is_stopping:
                    self._report()
        except (CollectorError, OSError, StorageError) as error:
            self._fail(str(error))
        finally:
            self._stop_looking()
        return 0 if self._failure is None else EXIT_CODE_OF_FAILURE

    def is_waiting(self, training: ProcessGroup) -> bool:
        """Tell whether the mark still says that the trial is being stopped: then Katib's collector waits for the shell to write
        that it completed, for ever where the shell has ended without."""
        with contextlib.suppress(OSError):
            return self._failure is None and self._mark(training).read_text().strip() == EARLY_STOPPED
        return False

    def _stop(self, training: ProcessGroup) -> None:
        self._say("I", "Training container is early stopped")
        self._mark(training).write_text(EARLY_STOPPED)
        children = training.children()
        if len(children) != 1:
            raise CollectorError(f"Multiple children processes are not supported. Children processes: {children}")
        try:
            os.kill(children[0], signal.SIGTERM)
        except ProcessLookupError as error:
            raise CollectorError(f"Unable to terminate child process {children[0]}, error: {error}") from error
        self.is_stopping = True
        self._report()
        self._stop_looking()

    def _report(self) -> None:
        try:
            content = self._metrics_file.read_bytes().decode(errors="replace")
        except OSError as error:
            text = f"open {self._settings.path}: {(error.strerror or str(error)).lower()}"
            raise CollectorError(f"Failed to collect logs: failed to open the file: {text}") from error
        observations = self._settings.format.observations(content)
        self._reports.report(self.trial, observations)
        self._say("I", f"Metrics reported: {len(observations)}")

    def _check_mark(self, training: ProcessGroup) -> None:
        mark, why = self._mark(training), "Failed to wait for worker container:"
        try:
            content = mark.read_text().strip()
        except OSError as error:
            seen = f"{self._settings.directory}/{mark.name} for pid {training.pid}"
            failed = f"training container is failed. Unable to read file {seen}, error: {(error.strerror or str(error)).lower()}"
            raise CollectorError(f"{why} {failed}") from error
        if content != COMPLETED:
            raise CollectorError(f"{why} unable to find marker: {COMPLETED} in contents: {content}")

    def _new_lines(self) -> list[str]:
        """Return the complete lines that were added since the last call."""
        try:
            with self._metrics_file.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        complete = content[: content.rfind(b"\n") + 1]
        self._offset += len(complete)
        return complete.decode(errors="replace").split("\n")[:-1]

    def _mark(self, training: ProcessGroup) -> Path:
        return self._metrics_file.parent / f"{training.pid}.pid"

    def _fail(self, message: str) -> None:
        self._failure = message
        self._stop_looking()
        self._say("F", message)

    def _stop_looking(self) -> None:
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def _say(self, severity: str, message: str) -> None:
        with contextlib.suppress(OSError), self._log.open("a") as log:  # the disk is full: the exit code says the rest
            log.write(f"{severity}{datetime.now(UTC):%m%d %H:%M:%S.%f}      14 main.go:142] {message}\n")
