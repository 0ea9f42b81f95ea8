"""The emulated node: it runs each pod as a process of this machine, with folders, a log and a status, and has room for all.

A process of this machine cannot have a file system of its own without rights that a user does not have: so where a text names a
path below a mount, it names the volume's folder instead. This is the emulation's largest deviation from a container. Each pod
has a thread of its own that sleeps while nothing happens.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katib_emulation.collector import CONTAINER as COLLECTOR
from katib_emulation.collector import TRIAL_LABEL, Collector, CollectorSettings, Observations
from katib_emulation.objects import (
    CONFIG_MAPS,
    JOBS,
    PODS,
    TRIALS,
    Object,
    StatusError,
    Store,
    is_deleting,
    is_finished,
    now,
    owner_of,
    set_condition,
    set_finalizer,
)
from katib_emulation.processes import ProcessGroup

LOOK_SECONDS = 0.02  # how often a growing log, and the metrics of a trial that may be stopped, are looked at
MEMORY_SECONDS = 0.05  # how often the memory of a pod with a limit is looked at
TERMINATED = 128 + signal.SIGTERM  # exit code of a collector whose pod was deleted, as a real cluster has it
STOP_SECONDS = 1.2
TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a pod until its process has ended and its Job has counted it."""

_CHUNK = 1 << 20
_SAFE_PATH = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_PYTHONS = ("python", "python3")
log = logging.getLogger(__name__)


class ConfigError(Exception):
    """The container cannot be configured: it waits with CreateContainerConfigError, and the text is its message."""


def set_containers(pod: Object, states: Mapping[str, Object]) -> None:
    """Write the states of all containers, by name."""
    images, statuses = {spec["name"]: spec.get("image", "") for spec in pod["spec"]["containers"]}, []
    for name, state in sorted(states.items()):
        identity = "" if "waiting" in state else f"emulated://{images[name]}"
        about = {"name": name, "image": images[name], "imageID": identity}
        statuses.append({**about, "ready": "running" in state, "restartCount": 0, "state": state})
    pod["status"]["containerStatuses"] = statuses


def set_finished(pod: Object, states: Mapping[str, Object]) -> None:
    """All containers have ended, in these states by name; the pod has succeeded if each has."""
    codes = [state["terminated"]["exitCode"] for state in states.values()]
    pod["status"]["phase"] = "Failed" if not codes or any(codes) else "Succeeded"
    set_containers(pod, states)


def terminated(exit_code: int, started: str | None, reason: str | None = None, **more: str) -> Object:
    """Return the state of a container that has ended."""
    reason = reason or ("Completed" if exit_code == 0 else "Error")
    return {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now(), **more}}


def log_of(folder: Path, container: str) -> Path:
    """Return the file in a pod's folder with what a container printed, errors included."""
    return folder / "logs" / f"{container}.log"


def translator(folders: Mapping[str, Path]) -> Callable[[str], str]:
    """Return what replaces every mount path in a text by the folder that stands for it; `folders`: by absolute mount path."""
    by_path = {path.rstrip("/"): str(folder) for path, folder in folders.items() if path.rstrip("/")}
    names = "|".join(map(re.escape, sorted(by_path, key=len, reverse=True)))
    # a whole path or the begin of one: "/data" neither in "/data2" nor in "/my/data"
    pattern = re.compile(rf"(?<![\w./-])(?:{names})(?![\w.-])" if names else "(?!)")
    return lambda text: pattern.sub(lambda match: by_path[match[0]], text)


@dataclass(frozen=True, slots=True)
class ContainerSetup:
    """A container whose process can be started."""

    name: str
    command: list[str]
    environment: dict[str, str]
    memory_limit: int | None  # bytes
    translate: Callable[[str], str]  # a text with paths of the container


def set_up(pod: Object, folder: Path, config_maps: Mapping[str, Mapping[str, str]]) -> ContainerSetup:
    """Make the volumes of a pod, and return what is started.

    Raises:
        ConfigError: the pod asks for what is not there, or not emulated.
        OSError: the disk is full, or the folders cannot be written.
    """
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *(each for each in spec["containers"] if each["name"] != COLLECTOR)]
    if len(containers) != 1:
        names = ", ".join(each["name"] for each in containers)
        raise ConfigError(f"the emulated node runs pods of one container without init containers, but got: {names}")
    container: Object = containers[0]
    for volume in spec.get("volumes") or ():
        path, source = folder / "volumes" / volume["name"], volume.get("configMap") or {}
        path.mkdir(parents=True, exist_ok=True)
        if "emptyDir" not in volume and (not source or source.get("items")):
            kinds = ", ".join(sorted(set(volume) - {"name"})) or "none"
            why = f"the emulated node has no volumes of kind {kinds}; use emptyDir or a whole configMap"
            raise ConfigError(f'volume "{volume["name"]}": {why}')
        if source and source["name"] not in config_maps:
            raise ConfigError(f'volume "{volume["name"]}": configmap "{source["name"]}" not found')
        for file, text in config_maps[source["name"]].items() if source else ():
            (path / file).write_text(text)
    mounts = container.get("volumeMounts") or ()
    translate = translator({mount["mountPath"]: folder / "volumes" / mount["name"] for mount in mounts})
    variables = {"HOSTNAME": pod["metadata"]["name"]}
    for variable in container.get("env") or ():
        if variable.get("valueFrom"):
            raise ConfigError(f"the emulated node sets variables by value, but {variable['name']} from {variable['valueFrom']}")
        variables[variable["name"]] = _expanded(str(variable.get("value") or ""), variables)
    memory = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    if memory is not None and not str(memory).isdecimal():
        raise ConfigError(f"the emulated node takes a limit of memory in bytes, but got {memory!r}")
    return ContainerSetup(
        name=container["name"],
        command=_command(container, variables, translate),
        environment={**os.environ, **{name: translate(value) for name, value in variables.items()}},
        memory_limit=None if memory is None else int(memory),
        translate=translate,
    )


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the text as Kubernetes expands it: `$(NAME)` becomes the variable's value if there is one, `$$` becomes `$`."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else variables.get(match[1], match[0]), text)


def _command(container: Mapping[str, Any], variables: Mapping[str, str], translate: Callable[[str], str]) -> list[str]:
    """Return the command to start: expanded, with folders for mount paths and this Python for `python`."""
    if not container.get("command"):
        raise ConfigError(f"the emulation knows no image's entry point: give `command` of container {container['name']}")
    words = [*container["command"], *(container.get("args") or ())]
    words = [translate(_expanded(str(word), variables)) for word in words]
    if words[0] in _PYTHONS:
        return [sys.executable, *words[1:]]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"] and len(words) > 2:
        first, blank, rest = words[2].partition(" ")
        if first in _PYTHONS:
            words[2] = f"{shlex.quote(sys.executable)}{blank}{rest}"
    return words


class PodRunner:
    """Runs one pod, and keeps its status.

    Args:
        images: those that can be pulled (empty: all).
    """

    def __init__(self, pod: Object, folder: Path, store: Store, reports: Observations, images: Collection[str]) -> None:
        self.has_ended = threading.Event()
        self._pod, self._folder, self._store = pod, folder, store
        self._reports, self._images = reports, images
        self._name, self._namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._is_deleted = self._is_abandoned = False
        self._bell = threading.Event()
        self._group: ProcessGroup | None = None
        self.thread = threading.Thread(target=self._run, name=f"pod {self._name}", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self.thread.start()

    def delete(self) -> None:
        """The pod was deleted: end its process, by force after its grace period."""
        self._is_deleted = True
        self._wake()

    def abandon(self) -> None:
        """The server stops: kill the process, and leave the pod's status as it is."""
        self._is_abandoned = True
        self._wake()
        if self._group is not None:
            self._group.kill()  # its thread may be waiting for the end of a grace period

    def _wake(self) -> None:
        self._bell.set()
        if self._group is not None:
            self._group.wake()

    def _run(self) -> None:
        states: dict[str, Object] = {}
        try:
            states = self._run_containers()
        except Exception as error:  # a defect of the emulation or a full disk: the pod must not hang for ever
            log.exception("pod %s failed", self._name)
            self._warn(f"{type(error).__name__}: {error}")
        finally:
            with contextlib.suppress(StatusError):  # the server is ending
                if not self._is_abandoned:
                    self._update(lambda pod: set_finished(pod, states))
            self.has_ended.set()

    def _run_containers(self) -> dict[str, Object]:
        """Return the last states of the containers, by name; none if they never ran."""
        names = [spec["name"] for spec in self._pod["spec"]["containers"]]

        def wait(reason: str, message: str) -> dict[str, Object]:
            """Say why no container can run, and wait until the pod is deleted."""
            waiting = {"waiting": {"reason": reason, "message": message}}
            self._update(lambda pod: set_containers(pod, dict.fromkeys(names, waiting)))
            self._warn(message)
            self._bell.wait()
            return {}

        def schedule(pod: Object) -> None:
            pod["spec"]["nodeName"] = "emulated"
            pod["status"]["startTime"] = now()
            set_condition(pod, "PodScheduled")
            set_containers(pod, {name: {"waiting": {"reason": "ContainerCreating"}} for name in names})

        self._update(schedule)
        images = [spec.get("image", "") for spec in self._pod["spec"]["containers"] if spec["name"] != COLLECTOR]
        missing = next((image for image in images if self._images and image not in self._images), None)
        if missing is not None:
            available = f"the emulated node has: {', '.join(self._images)}"
            return wait("ErrImagePull", f'Failed to pull image "{missing}": {missing}: not found; {available}')
        config_maps = self._store.oldest_first(CONFIG_MAPS, self._namespace)
        try:
            for part in ("work", "logs"):
                (self._folder / part).mkdir(parents=True, exist_ok=True)
            for name in names:
                log_of(self._folder, name).touch()
            settings = {config_map["metadata"]["name"]: config_map.get("data") or {} for config_map in config_maps}
            setup = set_up(self._pod, self._folder, settings)
        except ConfigError as error:
            return wait("CreateContainerConfigError", str(error))
        started = now()
        try:
            group = ProcessGroup(setup.command, setup.environment, self._folder / "work", log_of(self._folder, setup.name))
        except OSError as error:
            text = f'exec: "{setup.command[0]}": {(error.strerror or str(error)).lower()}'
            self._warn(f"failed to start container: {text}")
            return {setup.name: terminated(128, started, "StartError", message=text)}
        return self._run_group(group, setup, started)

    def _run_group(self, group: ProcessGroup, setup: ContainerSetup, started: str) -> dict[str, Object]:
        """Run the started container to its end, and the collector where Katib's webhook has put one into the pod."""
        self._group, collector = group, None
        try:
            names = [spec["name"] for spec in self._pod["spec"]["containers"]]
            if COLLECTOR in names:
                trial = self._store.get(TRIALS, self._pod["metadata"]["labels"][TRIAL_LABEL], self._namespace)
                settings = CollectorSettings.of_trial(trial)
                path = Path(setup.translate(settings.path))
                collector = Collector(settings, path, log_of(self._folder, COLLECTOR), self._reports)

            def run(pod: Object) -> None:
                pod["status"]["phase"] = "Running"
                set_containers(pod, {name: {"running": {"startedAt": started}} for name in names})

            self._update(run)
            self._store.record_event(self._pod, "Normal", "Started", f"Started container {setup.name}")
            reason = self._watch(group, collector, setup.memory_limit)
        finally:
            code = group.finish()  # also after a defect: no process is left alone
        states = {setup.name: terminated(code, started, reason)}
        if collector is not None and not self._is_abandoned:
            if collector.is_stopping:  # what the early stopping service does: append a condition, and leave the others
                stopped = {"type": "EarlyStopped", "status": "True", "reason": "TrialEarlyStopped"}
                stopped |= {"message": "Trial is early stopped", "lastUpdateTime": now(), "lastTransitionTime": now()}

                def append(trial: Object) -> None:
                    trial.setdefault("status", {}).setdefault("conditions", []).append(stopped)

                self._store.update(TRIALS, collector.trial, self._namespace, append)
            states[COLLECTOR] = terminated(TERMINATED if self._is_deleted else collector.finish(group), started)
        return states

    def _watch(self, group: ProcessGroup, collector: Collector | None, limit: int | None) -> str | None:
        """Wait for the end of the process and do what has to be done before; return why it was killed, or None."""
        next_look, is_terminated = time.monotonic(), False
        while True:
            if collector is not None:
                collector.look(group)
            if self._is_abandoned:
                group.kill()
            elif self._is_deleted and not is_terminated:
                is_terminated = True
                group.terminate(self._pod["spec"].get("terminationGracePeriodSeconds", 30))
            if limit is not None and time.monotonic() >= next_look:
                next_look = time.monotonic() + MEMORY_SECONDS
                if group.exceeds(limit):
                    group.kill()
                    return "OOMKilled"
            waits = [] if limit is None else [next_look - time.monotonic()]
            if collector is not None and collector.rule is not None:
                waits.append(LOOK_SECONDS)
            if group.wait(min(waits, default=None)):
                return None

    def _update(self, change: Callable[[Object], None]) -> None:
        self._store.update(PODS, self._name, self._namespace, change)

    def _warn(self, message: str) -> None:
        self._store.record_event(self._pod, "Warning", "Failed", f"Error: {message}")


class Node:
    """Runs all pods of a store.

    Args:
        images: those that it can pull (empty: all).
    """

    def __init__(self, store: Store, observations: Observations, folder: Path, images: Sequence[str] = ()) -> None:
        self._store, self._observations, self._images = store, observations, tuple(images)
        self._folder = Path(os.path.abspath(folder)) / "pods"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._link: Path | None = None
        if not _SAFE_PATH.fullmatch(str(self._folder)):  # Katib joins a command without quotes: a blank in a path would break it
            self._link = Path(tempfile.mkdtemp(prefix="katib-emulated-", dir="/tmp"))
            (self._link / "pods").symlink_to(self._folder)
            self._folder = self._link / "pods"
        self._runners: dict[str, PodRunner] = {}  # by the pod's uid, until the end of the pod is known
        self._changes = store.subscribe(PODS)
        self._thread = threading.Thread(target=self._decide, name="node", daemon=True)

    def start(self) -> None:
        """Begin to run pods."""
        self._thread.start()

    def stop(self) -> None:
        """Kill all processes and end all threads; pods and Jobs stay as they are. May be called twice."""
        until = time.monotonic() + STOP_SECONDS
        self._changes.close()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS / 3)  # no pod is started any more
        runners = list(self._runners.values())
        for runner in runners:
            runner.abandon()
        for runner in runners:
            runner.thread.join(max(0.0, until - time.monotonic()))
        if self._link is not None:
            shutil.rmtree(self._link, ignore_errors=True)

    def log(self, namespace: str, name: str, container: str | None, is_followed: bool) -> bytes | Iterator[bytes]:
        """Return what a container printed so far; or, followed, pieces of it until it has ended.

        Empty pieces let the caller look whether its client is there. A pod without a node has printed nothing.

        Raises:
            StatusError: 404, no such pod; 400, the container waits to start.
        """
        pod = self._store.get(PODS, name, namespace)
        uid, container = pod["metadata"]["uid"], container or pod["spec"]["containers"][0]["name"]
        for entry in (pod.get("status") or {}).get("containerStatuses") or ():
            if entry["name"] == container and "waiting" in entry["state"]:
                why = entry["state"]["waiting"]["reason"]
                raise StatusError.bad_request(f'container "{container}" in pod "{name}" is waiting to start: {why}')
        path, runner = log_of(self._folder / uid, container), self._runners.get(uid)
        if not path.exists():
            return b""
        if not is_followed:
            return path.read_bytes()

        def follow() -> Iterator[bytes]:
            is_last = False
            with path.open("rb") as file:
                while not is_last:
                    is_last = runner is None or runner.has_ended.wait(LOOK_SECONDS)  # what was written before the end is read
                    yield from iter(lambda: file.read(_CHUNK), b"")
                    yield b""

        return follow()

    def _decide(self) -> None:
        """Follow all changes of pods, until the node stops."""
        while not self._changes.is_closed:
            change = self._changes.next()
            if change is None:
                continue
            pod, uid = change.object, change.object["metadata"]["uid"]
            name, namespace, job = pod["metadata"]["name"], pod["metadata"]["namespace"], owner_of(pod, JOBS)
            if change.type == "DELETED":
                if (runner := self._runners.pop(uid, None)) is not None:
                    runner.abandon()  # somebody removed the finalizer by hand
                shutil.rmtree(self._folder / uid, ignore_errors=True)
            elif is_finished(pod):
                self._runners.pop(uid, None)
                if job is None or self._store.find(JOBS, job, namespace) is None:  # nobody will count it
                    self._store.update(PODS, name, namespace, lambda fresh: set_finalizer(fresh, TRACKING, False))
            elif uid in self._runners:
                if is_deleting(pod):
                    self._runners[uid].delete()
            else:
                self._runners[uid] = PodRunner(pod, self._folder / uid, self._store, self._observations, self._images)
                self._runners[uid].start()
