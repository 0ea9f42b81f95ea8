"""One pod on the node, from its place there to its end: a thread of its own that sleeps while nothing happens."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from katib_emulation.kinds import CONFIG_MAPS, PODS, TRIALS
from katib_emulation.node import pod_status
from katib_emulation.node.collector import Collector
from katib_emulation.node.container import ConfigError, MountError, PodSetup, set_up
from katib_emulation.node.pod_files import PodFiles
from katib_emulation.node.processes import ProcessGroup
from katib_emulation.node.webhook import CONTAINER as COLLECTOR
from katib_emulation.objects import Object, now
from katib_emulation.observations import Observations
from katib_emulation.statuses import ApiError
from katib_emulation.storage.store import Store

log = logging.getLogger(__name__)

MEMORY_SECONDS = 0.05
"""How often the memory of a pod with a limit is looked at."""

MARK_SECONDS = 1.0
"""How often a collector that waits for the shell's mark looks at it."""

TERMINATED = 128 + signal.SIGTERM  # exit code of a collector whose pod was deleted, as a real cluster has it
FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS = 1.0, 60.0
DEFAULT_GRACE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class NodeParts:
    """What all pods of a node share."""

    store: Store
    reports: Observations
    images: Collection[str]
    mark: str


class PodRunner:
    """Runs one scheduled pod, and keeps its status."""

    def __init__(self, pod: Object, files: PodFiles, parts: NodeParts) -> None:
        self.has_ended = threading.Event()
        self._pod = pod
        self._files = files
        self._parts = parts
        self._is_deleted = False
        self._is_abandoned = False
        self._bell = threading.Event()
        self._group: ProcessGroup | None = None
        self._thread = threading.Thread(target=self._run, name=f"pod {pod['metadata']['name']}", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def delete(self) -> None:
        """The pod was deleted: end its process, by force after its grace period."""
        self._is_deleted = True
        self._wake()

    def abandon(self) -> None:
        """The server stops: kill the process, and leave the pod's status as it is."""
        self._is_abandoned = True
        self._wake()
        group = self._group
        if group is not None:
            group.kill()  # its thread may be waiting for the end of a grace period

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(seconds)

    def _wake(self) -> None:
        self._bell.set()
        group = self._group
        if group is not None:
            group.wake()

    @property
    def _is_over(self) -> bool:
        return self._is_deleted or self._is_abandoned

    def _run(self) -> None:
        try:
            states = self._run_containers()
        except Exception as error:  # a defect of the emulation or a failing store: the pod must not hang for ever
            log.exception("pod %s failed", self._pod["metadata"]["name"])
            self._warn("Failed", f"Error: {type(error).__name__}: {error}")
            states = {}
        try:
            if not self._is_abandoned:
                self._update(lambda pod: pod_status.set_finished(pod, states))
        except ApiError as error:
            log.error("the end of pod %s cannot be kept: %s", self._pod["metadata"]["name"], error)
        finally:
            self.has_ended.set()
            self._wake_readers()

    def _run_containers(self) -> dict[str, Object]:
        """Return the last states of the containers, by name; none if they never ran."""
        if not self._has_image():
            self._bell.wait()
            return {}
        delay = FIRST_RETRY_SECONDS
        while not self._is_over:
            setup = self._prepared()
            if setup is not None:
                return self._start(setup)
            self._bell.wait(delay)
            delay = min(delay * 2, LAST_RETRY_SECONDS)
        return {}

    def _has_image(self) -> bool:
        containers = [spec for spec in self._pod["spec"]["containers"] if spec["name"] != COLLECTOR]
        container = next((spec for spec in containers if spec.get("image") not in self._parts.images), None)
        if container is None or not self._parts.images:
            return True
        image, known = container.get("image", ""), ", ".join(self._parts.images)
        text = f'Failed to pull image "{image}": {image}: not found; the emulated node has: {known}'
        self._say("Pulling", f'Pulling image "{image}"')
        self._wait_for("ErrImagePull", text, container["name"])
        self._warn("Failed", text)
        self._warn("Failed", "Error: ErrImagePull")
        self._say("BackOff", f'Back-off pulling image "{image}"')
        self._wait_for("ImagePullBackOff", f'Back-off pulling image "{image}": {text}', container["name"])
        self._warn("Failed", "Error: ImagePullBackOff")
        return False

    def _prepared(self) -> PodSetup | None:
        """Set the pod up; None if it has to wait, which its status and an event say then."""
        try:
            return set_up(self._pod, self._files, self._config_map, self._parts.mark)
        except MountError as error:
            self._warn("FailedMount", str(error))
        except (ConfigError, ValueError) as error:
            self._wait_for("CreateContainerConfigError", str(error))
            self._warn("Failed", f"Error: {error}")
        except OSError as error:
            text = f"cannot make the container's folders: {error.filename or self._files.folder}: {error.strerror or error}"
            self._wait_for("CreateContainerError", text)
            self._warn("Failed", f"Error: {text}")
        return None

    def _config_map(self, name: str) -> dict[str, str] | None:
        try:
            found = self._parts.store.get(CONFIG_MAPS, name, self._pod["metadata"]["namespace"])
        except ApiError:
            return None
        return dict(found.get("data") or {})

    def _start(self, setup: PodSetup) -> dict[str, Object]:
        """Run the container to its end."""
        started = now()
        try:
            group = ProcessGroup(setup.command, setup.environment, setup.folder, self._files.log(setup.name))
        except OSError as error:
            text = f'exec: "{setup.command[0]}": {(error.strerror or str(error)).lower()}'
            self._warn("Failed", f"Error: failed to start container: {text}")
            state = pod_status.terminated(128, started, "StartError")
            state["terminated"]["message"] = text
            return {setup.name: state}
        self._group = group
        collector = None
        try:
            if setup.collector is not None:
                collector = Collector(setup.collector, setup.metrics_file, self._files.log(COLLECTOR), self._parts.reports)
            self._update(lambda pod: pod_status.set_running(pod, started))
            self._say("Started", f"Started container {setup.name}")
            reason = self._watch(group, collector, setup.memory_limit)
        finally:
            code = group.finish()  # also after a defect: no process is left alone
        states = {setup.name: pod_status.terminated(code, started, reason)}
        if collector is not None and not self._is_abandoned:
            if collector.is_stopping:
                self._mark_early_stopped(collector)
            self._wait_for_mark(collector, group, states)
            states[COLLECTOR] = pod_status.terminated(TERMINATED if self._is_over else collector.finish(group), started)
        return states

    def _wait_for_mark(self, collector: Collector, group: ProcessGroup, states: dict[str, Object]) -> None:
        """Let the collector wait for what the shell writes at the end, alone if that ended without, or until the pod goes."""
        if not self._is_over and collector.is_waiting(group):
            self._update(lambda pod: pod_status.set_ended(pod, states))
        while collector.is_waiting(group) and not self._is_over:
            self._bell.wait(MARK_SECONDS)

    def _watch(self, group: ProcessGroup, collector: Collector | None, limit: int | None) -> str | None:
        """Wait for the end of the process and do what has to be done before; return why it was killed, or None."""
        next_look = time.monotonic()
        is_terminated = False
        if collector is not None:
            collector.look(group)  # at what was written before its watch was there
        while True:
            if self._is_abandoned:
                group.kill()
            elif self._is_deleted and not is_terminated:
                is_terminated = True
                group.terminate(self._pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS))
            if limit is not None and time.monotonic() >= next_look:
                next_look = time.monotonic() + MEMORY_SECONDS
                if group.exceeds(limit):
                    group.kill()
                    return "OOMKilled"
            waits = [] if limit is None else [next_look - time.monotonic()]
            if collector is not None and collector.poll_seconds is not None:
                waits.append(collector.poll_seconds)
            if group.wait(min(waits, default=None), *(collector.descriptors if collector is not None else ())):
                return None
            if collector is not None:
                collector.look(group)

    def _mark_early_stopped(self, collector: Collector) -> None:
        """Do what the early stopping service does when the collector tells it: append a condition, and leave the others."""
        time_ = now()
        condition = {"type": "EarlyStopped", "status": "True", "reason": "TrialEarlyStopped", "message": "Trial is early stopped"}
        condition |= {"lastUpdateTime": time_, "lastTransitionTime": time_}

        def append(trial: Object) -> None:
            trial.setdefault("status", {}).setdefault("conditions", []).append(condition)

        self._parts.store.update(TRIALS, collector.trial, self._pod["metadata"]["namespace"], append)

    def _update(self, change: Callable[[Object], None]) -> None:
        metadata = self._pod["metadata"]
        self._parts.store.update(PODS, metadata["name"], metadata["namespace"], change)

    def _wait_for(self, reason: str, message: str, container: str | None = None) -> None:
        self._update(lambda pod: pod_status.set_waiting(pod, reason, message, container))

    def _say(self, reason: str, message: str) -> None:
        self._parts.store.record_event(self._pod, "Normal", reason, message)

    def _warn(self, reason: str, message: str) -> None:
        self._parts.store.record_event(self._pod, "Warning", reason, message)

    def _wake_readers(self) -> None:
        """Touch the logs, so that those who follow them see at once that the pod has ended."""
        try:
            for path in self._files.logs.iterdir():
                os.utime(path)
        except OSError:
            pass  # there is no log
