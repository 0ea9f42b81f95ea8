"""The logs of pods: whole, or followed until the container has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katib_emulation.node.collector import klog_prefix
from katib_emulation.node.collector_settings import CONTAINER, CollectorSettings
from katib_emulation.node.file_watch import FileWatch
from katib_emulation.node.pod_files import PodFiles
from katib_emulation.statuses import bad_request

HEARTBEAT_SECONDS = 0.5
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log; `prefixed`: every line gets the prefix of the collector's log."""

    path: Path
    prefixed: bool = False

    def read(self) -> bytes:
        """Return the whole; nothing where the file does not exist."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        shown, rest = self._shown(content)
        return shown + (self._shown(rest + b"\n")[0] if rest else b"")

    def follow(self, has_ended: Callable[[], bool]) -> Iterator[bytes]:
        """Yield what is in the file, then what is added, until `has_ended`.

        While nothing is added, empty bytes come every half second, so that the caller can see whether anybody still listens.
        """
        offset, rest = 0, b""
        with FileWatch(self.path.parent) as watch:
            while True:
                watch.drain()
                is_last = has_ended()  # asked before reading: what was written before the end is read
                for chunk in self._chunks(offset):
                    offset += len(chunk)
                    text, rest = self._shown(rest + chunk)
                    yield text
                if is_last:
                    break
                watch.wait(HEARTBEAT_SECONDS)
                yield b""
        if rest:
            yield self._shown(rest + b"\n")[0]

    def _chunks(self, offset: int) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                while chunk := file.read(_CHUNK):
                    yield chunk
        except FileNotFoundError:
            return

    def _shown(self, content: bytes) -> tuple[bytes, bytes]:
        """Return (what is shown, the incomplete line that waits for its end)."""
        if not self.prefixed:
            return content, b""
        *lines, rest = content.split(b"\n")
        prefix = klog_prefix().encode()
        return b"".join(prefix + line + b"\n" for line in lines), rest


def log_files(pod: Mapping[str, Any], container: str | None, files: PodFiles) -> list[LogFile]:
    """Return the files of a container's log; none for a pod that has no node yet.

    Raises:
        ApiError: 400, there is no such container, none is named though there are several, or it waits to start.
    """
    name = pod["metadata"]["name"]
    specs = {spec["name"]: spec for spec in pod["spec"]["containers"]}
    if container is None:
        if len(specs) > 1:
            raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(specs)}]")
        container = next(iter(specs))
    if container not in specs:
        raise bad_request(f"container {container} is not valid for pod {name}")
    for entry in (pod.get("status") or {}).get("containerStatuses") or ():
        if entry["name"] == container and "waiting" in entry["state"]:
            reason = entry["state"]["waiting"]["reason"]
            why = "trying and failing to pull image" if reason in ("ErrImagePull", "ImagePullBackOff") else reason
            raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {why}')
    if not files.logs.exists():
        return []
    if container != CONTAINER:
        return [LogFile(files.log(container))]
    settings = CollectorSettings.of_arguments(specs[container]["args"])
    mount = next(mount for mount in specs[container]["volumeMounts"] if mount["mountPath"] == settings.directory)
    metrics = files.volume(mount["name"]) / Path(settings.path).name
    return [LogFile(metrics, prefixed=True), LogFile(files.log(container))]
