"""From a kubeconfig to the client's configuration; nothing of it becomes the default of the whole process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tuneoff.errors import InfrastructureError
from tuneoff_adapters.kubernetes.api_errors import one_line
from tuneoff_adapters.kubernetes.parallel_calls import at_once, value

LOADING_SECONDS = 10.0  # a kubeconfig may name a program that fetches the credentials
_LOOPBACK = "127.0.0.1,localhost,::1"  # never through a proxy


def client_configuration(kubeconfig: Path | None, context: str | None, within_seconds: float = LOADING_SECONDS) -> Any:
    """Return the client's Configuration for a kubeconfig (None: the usual one) or for the pod that this runs in.

    Raises:
        InfrastructureError: there is none, it is broken, it has no such context, or reading it takes too long.
    """
    answer = at_once({"kubeconfig": lambda: _configuration(kubeconfig, context)}, within_seconds)["kubeconfig"]
    if isinstance(answer, TimeoutError):  # it may start a program that waits for a person
        raise InfrastructureError(
            f"reading the kubeconfig takes longer than {within_seconds:g} s; does its credential program wait for a person?"
        )
    return value(answer)


def _configuration(kubeconfig: Path | None, context: str | None) -> Any:
    from kubernetes import config
    from kubernetes.client import Configuration

    configuration = Configuration()
    known = (os.environ.get("NO_PROXY"), os.environ.get("no_proxy"), configuration.no_proxy, _LOOPBACK)
    configuration.no_proxy = ",".join(text for text in known if text)
    given = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    files = [path for path in map(os.path.expanduser, given.split(os.pathsep)) if os.path.isfile(path)]
    if not files:
        if kubeconfig is None and context is None and os.path.isdir("/var/run/secrets/kubernetes.io/serviceaccount"):
            config.load_incluster_config(client_configuration=configuration)
            return configuration
        raise InfrastructureError(
            f"there is no kubeconfig at {given}; set option `kubeconfig` or KUBECONFIG to a cluster with Katib"
        )
    try:
        config.load_kube_config(os.pathsep.join(files), context, configuration)
    except Exception as error:  # a broken file fails in any way; the text of the client says which
        names = _context_names(files)
        hint = f"; its contexts: {', '.join(names)}" if names else "; it must be a file that kubectl takes"
        wanted = f" (context {context!r})" if context else ""
        raise InfrastructureError(f"cannot use kubeconfig {given}{wanted}: {one_line(str(error), 300)}{hint}") from error
    return configuration


def _context_names(files: Sequence[str]) -> list[str]:
    from kubernetes import config

    try:
        contexts, _ = config.list_kube_config_contexts(os.pathsep.join(files))
        return [str(entry["name"]) for entry in contexts]
    except Exception:  # the file is broken, which was said already
        return []
