"""What the node runs for a container: expanded command and environment, with this machine's Python and folders in them."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Mapping
from typing import Any

from katib_emulation.node.volumes import ConfigMapReader, Mounts
from katib_emulation.objects import Object

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_LABEL = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_PYTHONS = ("python", "python3")


class ConfigError(Exception):
    """The container cannot be configured: it waits with CreateContainerConfigError, and the text is its message."""


def expanded(text: str, environment: Mapping[str, str]) -> str:
    """Return the text as Kubernetes expands it: `$(NAME)` becomes the variable's value if there is one, `$$` becomes `$`."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else environment.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def environment_of(pod: Object, container: Mapping[str, Any], read_config_map: ConfigMapReader) -> dict[str, str]:
    """Return the variables that the container's own `envFrom` and `env` set, not yet translated to this machine's paths.

    Raises:
        ConfigError: a source does not exist, or is not emulated.
    """
    found: dict[str, str] = {"HOSTNAME": pod["metadata"]["name"]}
    for source in container.get("envFrom") or ():
        data = _config_map(source.get("configMapRef"), read_config_map)
        found |= {f"{source.get('prefix') or ''}{key}": value for key, value in data.items()}
    for variable in container.get("env") or ():
        value = _value(pod, variable, found, read_config_map)
        if value is not None:
            found[variable["name"]] = value
    return found


def command_of(container: Mapping[str, Any], environment: Mapping[str, str], mounts: Mounts) -> list[str]:
    """Return the command to start: expanded, with folders for mount paths and this Python for `python`.

    Raises:
        ConfigError: there is none (no image exists here whose entry point could be asked).
    """
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise ConfigError(f"the emulation knows no image's entry point: give `command` of container {container['name']}")
    words = [mounts.translate(expanded(str(word), environment)) for word in words]
    if words[0] in _PYTHONS:
        return [sys.executable, *words[1:]]
    if words[0] in ("sh", "bash") and words[1:2] == ["-c"] and len(words) > 2:
        first, blank, rest = words[2].partition(" ")
        if first in _PYTHONS:
            words[2] = f"{shlex.quote(sys.executable)}{blank}{rest}"
    return words


def _value(
    pod: Object,
    variable: Mapping[str, Any],
    so_far: Mapping[str, str],
    read_config_map: Callable[[str], Mapping[str, str] | None],
) -> str | None:
    source = variable.get("valueFrom")
    if not source:
        return expanded(str(variable.get("value") or ""), so_far)
    if "fieldRef" in source:
        return _field(pod, source["fieldRef"]["fieldPath"])
    if "configMapKeyRef" in source:
        reference = source["configMapKeyRef"]
        data = _config_map(reference, read_config_map)
        if reference["key"] not in data and not reference.get("optional"):
            raise ConfigError(f"couldn't find key {reference['key']} in ConfigMap {reference.get('name')}")
        return data.get(reference["key"])
    raise ConfigError(
        f"the emulated node cannot set {variable['name']} from {', '.join(source)}; use value, fieldRef or configMapKeyRef"
    )


def _field(pod: Object, path: str) -> str:
    metadata = pod["metadata"]
    match = _LABEL.fullmatch(path)
    if match:
        return str((metadata.get(match[1]) or {}).get(match[2], ""))
    plain = {"metadata.name": metadata["name"], "metadata.namespace": metadata["namespace"], "metadata.uid": metadata["uid"]}
    plain |= {"spec.nodeName": pod["spec"].get("nodeName", ""), "status.podIP": "127.0.0.1", "status.hostIP": "127.0.0.1"}
    if path not in plain:
        raise ConfigError(f"the emulated node knows no field {path}; use one of {', '.join(plain)}")
    return str(plain[path])


def _config_map(reference: Mapping[str, Any] | None, read: ConfigMapReader) -> Mapping[str, str]:
    if reference is None:
        raise ConfigError("the emulated node takes envFrom from config maps alone")
    data = read(reference.get("name", ""))
    if data is None and not reference.get("optional"):
        raise ConfigError(f'configmap "{reference.get("name")}" not found')
    return data or {}
