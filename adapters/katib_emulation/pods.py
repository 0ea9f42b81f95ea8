"""One pod on the node, from its place there to its end: its folders, what runs in them for its container, and its log.

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
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from katib_emulation import pod_status
from katib_emulation.collector import CONTAINER as COLLECTOR
from katib_emulation.collector import TRIAL_LABEL, Collector, CollectorSettings
from katib_emulation.errors import StatusError, bad_request
from katib_emulation.guardian import VARIABLE
from katib_emulation.objects import CONFIG_MAPS, PODS, TRIALS, Object, now
from katib_emulation.observations import Observations
from katib_emulation.processes import FileWatch, ProcessGroup, readable
from katib_emulation.store import Store

HEARTBEAT_SECONDS = 0.5  # of a followed log: how often the caller may look whether anybody still listens
_CHUNK = 1 << 20
_SAFE_PATH = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_PYTHONS = ("python", "python3")
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_FACTORS = {"m": Decimal("0.001"), **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)}}
_FACTORS |= {f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)}
log = logging.getLogger(__name__)
MEMORY_SECONDS = 0.05  # how often the memory of a pod with a limit is looked at
MARK_SECONDS = 1.0  # how often a collector that waits for the shell's mark looks at it
TERMINATED = 128 + signal.SIGTERM  # exit code of a collector whose pod was deleted, as a real cluster has it
DEFAULT_GRACE_SECONDS = 30


class ConfigError(Exception):
    """The container cannot be configured: it waits with CreateContainerConfigError, and the text is its message."""


def quantity(text: object) -> Decimal:
    """Return the number that a Kubernetes quantity means: "500m" is 0.5, "1Ki" is 1024.

    Raises:
        ValueError: it is not a quantity.
    """
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None:
        raise ValueError(f"a quantity is a number with a unit such as 500m or 512Mi, but got {text!r}")
    return Decimal(match[1]) * _FACTORS.get(match[2], Decimal(1))


@dataclass(frozen=True, slots=True)
class PodFolder:
    """The folder of one pod."""

    path: Path

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.path / "logs"

    def log(self, container: str) -> Path:
        """Return the file with what a container printed, errors included."""
        return self.logs / f"{container}.log"

    def remove(self) -> None:
        """Remove everything; what cannot be removed stays."""
        shutil.rmtree(self.path, ignore_errors=True)


class PodFolders:
    """The folders of all pods, by uid.

    Katib joins a container's command without quotes, so a path with a blank or the like would break it: then the folder goes by a
    name without such characters, a link in the folder for temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = self._name = Path(os.path.abspath(folder)) / "pods"
        self._folder.mkdir(parents=True, exist_ok=True)
        if not _SAFE_PATH.fullmatch(str(self._folder)):
            where = tempfile.gettempdir()
            self._name = Path(tempfile.mkdtemp(prefix="katib-emulated-", dir=where if _SAFE_PATH.fullmatch(where) else "/tmp"))
            self._name /= "pods"
            self._name.symlink_to(self._folder)

    def __iter__(self) -> Iterator[str]:
        return iter(os.listdir(self._folder))

    def of(self, uid: str) -> PodFolder:
        """Return the folder of the pod with this uid."""
        return PodFolder(self._name / uid)

    def close(self) -> None:
        """Remove the link, if there is one."""
        if self._name != self._folder:
            shutil.rmtree(self._name.parent, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class ContainerSetup:
    """A container whose process can be started."""

    name: str
    command: list[str]
    environment: dict[str, str]
    folder: Path
    memory_limit: int | None  # bytes
    mounts: Mounts


def set_up(pod: Object, folder: PodFolder, config_maps: Mapping[str, Mapping[str, str]], mark: str) -> ContainerSetup:
    """Make the folders of a pod and return what is started in them.

    Raises:
        ConfigError, ValueError: the pod asks for what is not there, or not emulated.
        OSError: the disk is full, or the folders cannot be written.
    """
    spec = pod["spec"]
    others = [container for container in spec["containers"] if container["name"] != COLLECTOR]
    if len(others) != 1 or spec.get("initContainers"):
        names = ", ".join(container["name"] for container in (*(spec.get("initContainers") or ()), *others))
        raise ConfigError(f"the emulated node runs pods of one container without init containers, but got: {names}")
    container: Object = others[0]
    mounted = container.get("volumeMounts") or ()
    (folder.path / "work").mkdir(parents=True, exist_ok=True)
    folder.logs.mkdir(exist_ok=True)
    volumes = {volume["name"]: _make_volume(volume, folder, config_maps) for volume in spec.get("volumes") or ()}
    mounts = Mounts({mount["mountPath"]: volumes[mount["name"]] for mount in mounted})
    variables = {"HOSTNAME": pod["metadata"]["name"]}
    for variable in container.get("env") or ():
        if variable.get("valueFrom"):
            raise ConfigError(f"the emulated node sets variables by value, but {variable['name']} from {variable['valueFrom']}")
        variables[variable["name"]] = _expanded(str(variable.get("value") or ""), variables)
    for started in spec["containers"]:
        folder.log(started["name"]).touch()
    memory = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    return ContainerSetup(
        name=container["name"],
        command=_command(container, variables, mounts),
        environment={**os.environ, **{name: mounts.translate(value) for name, value in variables.items()}, VARIABLE: mark},
        folder=folder.path / "work",
        memory_limit=None if memory is None else int(quantity(memory)),
        mounts=mounts,
    )


def _make_volume(volume: Mapping[str, Any], folder: PodFolder, config_maps: Mapping[str, Mapping[str, str]]) -> Path:
    name: str = volume["name"]
    path = folder.path / "volumes" / name
    path.mkdir(parents=True, exist_ok=True)
    if "configMap" in volume and not volume["configMap"].get("items"):
        data = config_maps.get(volume["configMap"]["name"])
        if data is None:
            why = f'configmap "{volume["configMap"]["name"]}" not found'
            raise ConfigError(f'volume "{name}": {why}')
        for file, text in data.items():
            (path / file).write_text(text)
    elif "emptyDir" not in volume:
        kinds = ", ".join(sorted(set(volume) - {"name"})) or "none"
        why = f"the emulated node has no volumes of kind {kinds}; use emptyDir or a whole configMap"
        raise ConfigError(f'volume "{name}": {why}')
    return path


class Mounts:
    """Which folder stands for which path of the container."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        """`folders`: by absolute mount path."""
        self._folders = {path.rstrip("/"): str(folder) for path, folder in folders.items() if path.rstrip("/")}
        names = "|".join(map(re.escape, sorted(self._folders, key=len, reverse=True)))
        # a whole path or the begin of one: "/data" neither in "/data2" nor in "/my/data"
        self._pattern = re.compile(rf"(?<![\w./-])(?:{names})(?![\w.-])" if names else "(?!)")

    def translate(self, text: str) -> str:
        """Return the text with every mount path in it replaced by its folder."""
        return self._pattern.sub(lambda match: self._folders[match[0]], text)


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the text as Kubernetes expands it: `$(NAME)` becomes the variable's value if there is one, `$$` becomes `$`."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else variables.get(match[1], match[0]), text)


def _command(container: Mapping[str, Any], variables: Mapping[str, str], mounts: Mounts) -> list[str]:
    """Return the command to start: expanded, with folders for mount paths and this Python for `python`."""
    if not container.get("command"):
        raise ConfigError(f"the emulation knows no image's entry point: give `command` of container {container['name']}")
    words = [*container["command"], *(container.get("args") or ())]
    words = [mounts.translate(_expanded(str(word), variables)) for word in words]
    if words[0] in _PYTHONS:
        return [sys.executable, *words[1:]]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"] and len(words) > 2:
        first, blank, rest = words[2].partition(" ")
        if first in _PYTHONS:
            words[2] = f"{shlex.quote(sys.executable)}{blank}{rest}"
    return words


def log_file(pod: Mapping[str, Any], container: str | None, folder: PodFolder) -> Path | None:
    """Return the file of a container's log; None for a pod that has no node yet.

    Raises:
        StatusError: 400, the container waits to start.
    """
    name, names = pod["metadata"]["name"], [spec["name"] for spec in pod["spec"]["containers"]]
    container = container or names[0]
    for entry in (pod.get("status") or {}).get("containerStatuses") or ():
        if entry["name"] == container and "waiting" in entry["state"]:
            why = entry["state"]["waiting"]["reason"]
            raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {why}')
    return path if (path := folder.log(container)).exists() else None


def follow(log: Path, has_ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield what is in a log, then what is added, until `has_ended`; empty bytes while nothing is added."""
    watch = FileWatch(log.parent)
    try:
        with log.open("rb") as file:
            while True:
                watch.drain()
                is_last = has_ended()  # asked before reading: what was written before the end is read
                while chunk := file.read(_CHUNK):
                    yield chunk
                if is_last:
                    return
                readable(HEARTBEAT_SECONDS if watch.seconds is None else watch.seconds, *watch.descriptors)
                yield b""
    finally:
        watch.close()


class PodRunner:
    """Runs one scheduled pod, and keeps its status.

    Args:
        images: those that can be pulled (empty: all).
        mark: the value of the guardian's variable.
    """

    def __init__(
        self, pod: Object, folder: PodFolder, store: Store, reports: Observations, images: Collection[str], mark: str
    ) -> None:
        self.has_ended = threading.Event()
        self._pod, self._folder, self._store = pod, folder, store
        self._reports, self._images, self._mark = reports, images, mark
        self._name, self._namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._is_deleted = self._is_abandoned = False
        self._bell = threading.Event()
        self._group: ProcessGroup | None = None
        self._thread = threading.Thread(target=self._run, name=f"pod {self._name}", daemon=True)

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
        if self._group is not None:
            self._group.kill()  # its thread may be waiting for the end of a grace period

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread."""
        self._thread.join(seconds)

    def _wake(self) -> None:
        self._bell.set()
        if self._group is not None:
            self._group.wake()

    @property
    def _is_over(self) -> bool:
        return self._is_deleted or self._is_abandoned

    def _run(self) -> None:
        states: dict[str, Object] = {}
        try:
            states = self._run_containers()
        except Exception as error:  # a defect of the emulation or a failing store: the pod must not hang for ever
            log.exception("pod %s failed", self._name)
            self._tell("Warning", "Failed", f"Error: {type(error).__name__}: {error}")
        try:
            if not self._is_abandoned:
                self._update(lambda pod: pod_status.set_finished(pod, states))
        except StatusError as error:
            log.error("the end of pod %s cannot be kept: %s", self._name, error)
        finally:
            self.has_ended.set()
            with contextlib.suppress(OSError):  # there is no log
                for path in self._folder.logs.iterdir():
                    os.utime(path)  # those who follow it see at once that the pod has ended

    def _run_containers(self) -> dict[str, Object]:
        """Return the last states of the containers, by name; none if they never ran."""
        images = [spec.get("image", "") for spec in self._pod["spec"]["containers"] if spec["name"] != COLLECTOR]
        missing = next((image for image in images if self._images and image not in self._images), None)
        if missing is not None:
            available = f"the emulated node has: {', '.join(self._images)}"
            self._wait("ErrImagePull", f'Failed to pull image "{missing}": {missing}: not found; {available}')
            return {}
        config_maps = {
            obj["metadata"]["name"]: obj.get("data") or {} for obj in self._store.oldest_first(CONFIG_MAPS, self._namespace)
        }
        try:
            setup = set_up(self._pod, self._folder, config_maps, self._mark)
        except (ConfigError, ValueError) as error:
            self._wait("CreateContainerConfigError", str(error))
            return {}
        except OSError as error:
            text = f"cannot make the container's folders: {error.filename or self._folder.path}: {error.strerror or error}"
            self._wait("CreateContainerError", text)
            return {}
        return self._start(setup)

    def _wait(self, reason: str, text: str) -> None:
        """Say why no container can run, and wait until the pod is deleted."""
        self._update(lambda pod: pod_status.set_waiting(pod, reason, text))
        self._tell("Warning", "Failed", f"Error: {text}")
        self._bell.wait()

    def _start(self, setup: ContainerSetup) -> dict[str, Object]:
        """Run the container to its end."""
        started = now()
        try:
            group = ProcessGroup(setup.command, setup.environment, setup.folder, self._folder.log(setup.name))
        except OSError as error:
            text = f'exec: "{setup.command[0]}": {(error.strerror or str(error)).lower()}'
            self._tell("Warning", "Failed", f"Error: failed to start container: {text}")
            state = pod_status.terminated(128, started, "StartError")
            state["terminated"]["message"] = text
            return {setup.name: state}
        self._group = group
        try:
            collector = self._collector(setup)
            self._update(lambda pod: pod_status.set_running(pod, started))
            self._tell("Normal", "Started", f"Started container {setup.name}")
            reason = self._watch(group, collector, setup.memory_limit)
        finally:
            code = group.finish()  # also after a defect: no process is left alone
        states = {setup.name: pod_status.terminated(code, started, reason)}
        if collector is not None and not self._is_abandoned:
            if collector.is_stopping:
                self._mark_early_stopped(collector.trial)
            if not self._is_over and collector.is_waiting(group):
                self._update(lambda pod: pod_status.set_containers(pod, states))
            while not self._is_over and collector.is_waiting(group):
                self._bell.wait(MARK_SECONDS)
            states[COLLECTOR] = pod_status.terminated(TERMINATED if self._is_over else collector.finish(group), started)
        return states

    def _collector(self, setup: ContainerSetup) -> Collector | None:
        """Return the collector where Katib's webhook has put one into the pod."""
        if all(spec["name"] != COLLECTOR for spec in self._pod["spec"]["containers"]):
            return None
        trial = self._store.get(TRIALS, self._pod["metadata"]["labels"][TRIAL_LABEL], self._namespace)
        settings = CollectorSettings.of_trial(trial)
        return Collector(settings, Path(setup.mounts.translate(settings.path)), self._folder.log(COLLECTOR), self._reports)

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
                group.terminate(self._pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS))
            if limit is not None and time.monotonic() >= next_look:
                next_look = time.monotonic() + MEMORY_SECONDS
                if group.exceeds(limit):
                    group.kill()
                    return "OOMKilled"
            waits = [] if limit is None else [next_look - time.monotonic()]
            watch = collector.watch if collector is not None else None
            if watch is not None and watch.seconds is not None:
                waits.append(watch.seconds)
            if group.wait(min(waits, default=None), *(watch.descriptors if watch is not None else ())):
                return None

    def _mark_early_stopped(self, trial: str) -> None:
        """Do what the early stopping service does when the collector tells it: append a condition, and leave the others."""
        condition = {"type": "EarlyStopped", "status": "True", "reason": "TrialEarlyStopped", "message": "Trial is early stopped"}
        condition |= {"lastUpdateTime": now(), "lastTransitionTime": now()}

        def append(obj: Object) -> None:
            obj.setdefault("status", {}).setdefault("conditions", []).append(condition)

        self._store.update(TRIALS, trial, self._namespace, append)

    def _update(self, change: Callable[[Object], None]) -> None:
        self._store.update(PODS, self._name, self._namespace, change)

    def _tell(self, type_: str, reason: str, message: str) -> None:
        self._store.record_event(self._pod, type_, reason, message)
