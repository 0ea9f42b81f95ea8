"""A kubeconfig, and single requests through the unmodified Kubernetes client and KatibClient. Only here and in `stream` are they.

Two traps of theirs are met here: their calls have no timeout, and the KatibClient hides the server's text. Nothing here is
asynchronous: what the client runs so blocks the interpreter's exit while a server hangs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tuneoff.errors import InfrastructureError
from tuneoff_adapters.kubernetes.api_errors import api_error, one_line
from tuneoff_adapters.kubernetes.parallel_calls import at_once, value
from tuneoff_adapters.kubernetes.resources import Object

LOADING_SECONDS = 10.0  # a kubeconfig may name a program that fetches the credentials
_LOOPBACK = "127.0.0.1,localhost,::1"  # never through a proxy
CONNECT_SECONDS = 5.0  # for the TCP (and TLS) connection alone: a server that takes longer is away
CONNECTIONS = 64  # kept open for the next request
_LASTING = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "certificate verify failed", "SSLCertVerificationError")


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
    exempt = (os.environ.get("NO_PROXY"), os.environ.get("no_proxy"), configuration.no_proxy, _LOOPBACK)
    configuration.no_proxy = ",".join(text for text in exempt if text)
    paths = str(kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config")
    files = [path for path in map(os.path.expanduser, paths.split(os.pathsep)) if os.path.isfile(path)]
    if not files:
        if kubeconfig is None and context is None and os.path.isdir("/var/run/secrets/kubernetes.io/serviceaccount"):
            config.load_incluster_config(client_configuration=configuration)
            return configuration
        raise InfrastructureError(
            f"there is no kubeconfig at {paths}; set option `kubeconfig` or KUBECONFIG to a cluster with Katib"
        )
    try:
        config.load_kube_config(os.pathsep.join(files), context, configuration)
    except Exception as error:  # a broken file fails in any way; the text of the client says which
        names: list[str] = []
        with contextlib.suppress(Exception):  # the file is broken, which is said anyway
            contexts, _ = config.list_kube_config_contexts(os.pathsep.join(files))
            names = [str(entry["name"]) for entry in contexts]
        hint = f"; its contexts: {', '.join(names)}" if names else "; it must be a file that kubectl takes"
        wanted = f" (context {context!r})" if context else ""
        raise InfrastructureError(f"cannot use kubeconfig {paths}{wanted}: {one_line(str(error), 300)}{hint}") from error
    return configuration


class NoAnswer(Exception):
    """No connection, none in time, or one that was cut; `is_lasting`: it will not pass by itself (certificates, no API)."""

    def __init__(self, text: str, is_lasting: bool = False) -> None:
        super().__init__(text)
        self.is_lasting = is_lasting or any(mark in text for mark in _LASTING)


class Transport:
    """One server, one user, one API client; any thread may use it. What its calls raise is the client's own: see `mapped`.

    Raises:
        StepError: the kubeconfig or its context cannot be used.
    """

    def __init__(self, kubeconfig: Path | None, context: str | None) -> None:
        from kubernetes.client import ApiClient

        self._configuration = configuration = client_configuration(kubeconfig, context)
        configuration.retries = False  # urllib3 would repeat by itself, and multiply every timeout
        configuration.connection_pool_maxsize = CONNECTIONS
        self.host = str(configuration.host)
        self._client = ApiClient(configuration)
        self._lock = threading.Lock()
        self.requests = 0  # so far

    def create_experiment(self, experiment: Object, namespace: str, seconds: float) -> None:
        """KatibClient.create_experiment, with a timeout, and with the server's own text where it fails."""
        from kubeflow.katib import KatibClient

        katib = KatibClient(client_configuration=self._configuration, namespace="default")
        api = katib.custom_api
        api.api_client = self._client
        timeouts = self._counted(seconds, seconds)
        api.create_namespaced_custom_object = functools.partial(api.create_namespaced_custom_object, _request_timeout=timeouts)
        try:
            katib.create_experiment(experiment, namespace)
        except Exception as error:  # the SDK raises a bare Exception; what happened is its context
            raise (error.__context__ or error) from None

    def call(
        self,
        method: str,
        path: str,
        seconds: float,
        query: Sequence[tuple[str, str]] = (),
        body: Object | None = None,
        silence: float | None = None,
    ) -> Any:
        """Return the answer's JSON object; with `silence`, an `HTTPResponse` of urllib3 as soon as the answer's head is there.

        `seconds`: the most that the answer may take; `silence`: that its body may go without a byte.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        answer = self._client.call_api(
            path,
            method,
            query_params=list(query),
            header_params={"Accept": "application/json, */*", "Content-Type": kind},
            body=body,
            response_type="object",
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
            _preload_content=silence is None,
            _request_timeout=self._counted(seconds, silence or seconds),
        )
        if silence is None and not isinstance(answer, dict):
            raise NoAnswer("its answer is not a JSON object: this is not a Kubernetes API", is_lasting=True)
        return answer

    def attach(self, namespace: str, pod: str, container: str) -> Input:
        """Return the standard input of a running container."""
        from kubernetes.client import ApiClient, CoreV1Api
        from kubernetes.stream import stream

        call = CoreV1Api(ApiClient(self._configuration)).connect_get_namespaced_pod_attach  # `stream` alters its client
        ways = {"stdin": True, "stdout": False, "stderr": False, "tty": False}
        return Input(stream(call, pod, namespace, container=container, _preload_content=False, **ways))

    def _counted(self, seconds: float, silence: float) -> tuple[float, float]:
        """Count a request; return its timeouts: for the connection, and between two pieces of the answer."""
        with self._lock:
            self.requests += 1
        return min(CONNECT_SECONDS, seconds), silence


class Input:
    """The standard input of a container, until either side goes."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    def write(self, text: str) -> None:
        """Write, and see whether the other side is still there.

        Raises:
            NoAnswer: it is not.
        """
        from websocket import WebSocketException

        try:
            self._socket.update(timeout=0)  # answers pings, and takes in an end
            if not self._socket.is_open():
                raise NoAnswer("the connection was cut")
            self._socket.write_stdin(text)
        except (OSError, WebSocketException) as error:
            raise NoAnswer("the connection was cut") from error

    def close(self) -> None:
        """Let go: the container sees the end of its input."""
        with contextlib.suppress(OSError):
            self._socket.close(timeout=0)


@contextlib.contextmanager
def mapped(request: str) -> Iterator[None]:
    """Turn what the client raises into ApiError and NoAnswer."""
    import urllib3.exceptions
    from kubernetes.client.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        if not error.status:  # the SDK's way of saying that TLS failed
            raise NoAnswer(one_line(str(error.reason), 300)) from error
        raise api_error(request, int(error.status), str(error.reason), error.body) from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise NoAnswer(_cause(error)) from error


def _cause(error: Exception) -> str:
    """Return why there was no answer, without the client's names of its own objects."""
    import urllib3.exceptions as exceptions

    text = one_line(str(error), 300)
    if "refused" in text:
        return "connection refused"
    if isinstance(error, exceptions.NewConnectionError | exceptions.ProxyError):  # the former is a TimeoutError of urllib3's too
        return text.rpartition(": ")[2] or text
    if isinstance(error, exceptions.TimeoutError | TimeoutError):
        return "no answer in time"
    if isinstance(error, exceptions.ProtocolError | ConnectionError):
        return "the connection was cut"
    return f"{type(error).__name__}: {text}"
