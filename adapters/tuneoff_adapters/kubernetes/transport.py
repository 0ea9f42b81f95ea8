"""Single requests through the unmodified Kubernetes client and KatibClient. Only this module touches them.

Three traps of theirs are met here: its own calls have no timeout, they hide the server's text, and what they run asynchronously
blocks the interpreter's exit while a server hangs (so nothing here is asynchronous).
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tuneoff_adapters.kubernetes.api_errors import one_line
from tuneoff_adapters.kubernetes.kubeconfig import client_configuration
from tuneoff_adapters.kubernetes.resources import Object

CONNECT_SECONDS = 5.0  # for the TCP (and TLS) connection alone: a server that takes longer is away
CONNECTIONS = 64  # kept open for the next request
_LASTING = ("CERTIFICATE_VERIFY_FAILED", "WRONG_VERSION_NUMBER", "certificate verify failed", "SSLCertVerificationError")


class Refused(Exception):
    """The server answered with an error: HTTP status, reason phrase, body."""

    def __init__(self, status: int, reason: str, body: str | bytes | None) -> None:
        super().__init__(f"{status} {reason}")
        self.status, self.reason, self.body = status, reason, body


class NoAnswer(Exception):
    """No connection, none in time, or one that was cut; `is_lasting`: it will not pass by itself (certificates, no API)."""

    def __init__(self, text: str, is_lasting: bool = False) -> None:
        super().__init__(text)
        self.is_lasting = is_lasting or any(mark in text for mark in _LASTING)


class Transport:
    """One server, one user, one API client; any thread may use it.

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
        self._requests = 0
        self._seconds = threading.local()  # of the KatibClient's call in this thread
        self._give_timeouts()

    @property
    def requests(self) -> int:
        """HTTP requests so far."""
        return self._requests

    def create_experiment(self, experiment: Object, namespace: str, seconds: float) -> None:
        """KatibClient.create_experiment, with a timeout, and with the server's own text where it fails."""
        from kubeflow.katib import KatibClient

        katib = KatibClient(client_configuration=self._configuration, namespace="default")
        katib.custom_api.api_client = self._client  # with the timeouts
        self._seconds.value = seconds
        try:
            with _mapped():
                try:
                    katib.create_experiment(experiment, namespace)
                except Exception as error:  # the SDK raises a bare Exception; what happened is its context
                    raise (error.__context__ or error) from None
        finally:
            self._seconds.value = None

    def send(
        self,
        method: str,
        path: str,
        seconds: float,
        query: Sequence[tuple[str, str]] | None = None,
        body: Object | None = None,
    ) -> Object:
        """Return the answer's JSON object.

        Raises:
            Refused, NoAnswer: it failed.
        """
        with _mapped():
            found = self._call(method, path, query, body, (min(CONNECT_SECONDS, seconds), seconds), True)
        if not isinstance(found, dict):
            raise NoAnswer("its answer is no JSON object: this is no Kubernetes API", is_lasting=True)
        return found

    def stream(self, path: str, query: Sequence[tuple[str, str]], seconds: float, silence: float) -> Body:
        """Return the body of the answer to a GET as soon as its head is there; it fails after `silence` seconds without a byte.

        Raises:
            Refused, NoAnswer: it failed.
        """
        with _mapped():
            timeouts = (min(CONNECT_SECONDS, seconds), silence)
            return Body(self._call("GET", path, query, None, timeouts, False))

    def attach(self, namespace: str, pod: str, container: str) -> Input:
        """Return the standard input of a running container.

        Raises:
            NoAnswer: it failed.
        """
        from kubernetes.client import ApiClient, CoreV1Api
        from kubernetes.stream import stream

        call = CoreV1Api(ApiClient(self._configuration)).connect_get_namespaced_pod_attach  # `stream` alters its client
        with _mapped():
            ways = {"stdin": True, "stdout": False, "stderr": False, "tty": False}
            return Input(stream(call, pod, namespace, container=container, _preload_content=False, **ways))

    def _call(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] | None,
        body: Object | None,
        timeouts: tuple[float, float],
        is_whole: bool,
    ) -> Any:
        return self._client.call_api(
            path,
            method,
            query_params=list(query or []),
            header_params={"Accept": "application/json, */*", "Content-Type": "application/json"},
            body=body,
            response_type="object",
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
            _preload_content=is_whole,
            _request_timeout=timeouts,
        )

    def _give_timeouts(self) -> None:
        """Give the client's requests that have no timeout one (the KatibClient's), and count all."""
        rest = self._client.rest_client
        request = rest.request

        @functools.wraps(request)
        def limited(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self._requests += 1
            if not options.get("_request_timeout"):
                seconds = getattr(self._seconds, "value", None) or CONNECT_SECONDS
                options["_request_timeout"] = (min(CONNECT_SECONDS, seconds), seconds)
            return request(*arguments, **options)

        rest.request = limited


class Body:
    """An answer's body that is read while it comes."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def chunks(self) -> Iterator[bytes]:
        """Yield its parts as they come, until its regular end.

        Raises:
            NoAnswer: it was cut, or was silent for too long.
        """
        with _mapped():
            if getattr(self._response, "chunked", False):
                yield from self._response.read_chunked()
            else:
                yield from self._response.stream(2**16)

    def lines(self) -> Iterator[tuple[bytes, bool]]:
        """Yield (line without its end, True) for each line, and at the regular end (rest, False) where there is one."""
        rest = b""
        for chunk in self.chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                yield line, True
        if rest:
            yield rest, False

    def shut(self) -> None:
        """Wake the thread that reads: its `chunks` end with NoAnswer. For another thread."""
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):  # it ended or was closed meanwhile
            self._response.shutdown()

    def close(self) -> None:
        """Let go of the connection. For the thread that reads."""
        with contextlib.suppress(OSError, ValueError):
            self._response.close()


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
def _mapped() -> Iterator[None]:
    """Turn what the client raises into Refused and NoAnswer."""
    import urllib3.exceptions
    from kubernetes.client.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        if not error.status:  # the SDK's way of saying that TLS failed
            raise NoAnswer(one_line(str(error.reason), 300)) from error
        raise Refused(int(error.status), str(error.reason), error.body) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise NoAnswer(_cause(error)) from error


def _cause(error: Exception) -> str:
    """Return why there was no answer, without the client's names of its own objects."""
    import urllib3.exceptions as known

    text = one_line(str(error), 300)
    if "refused" in text:
        return "connection refused"
    if isinstance(error, known.NewConnectionError | known.ProxyError):  # the former is a TimeoutError of urllib3's too
        return text.rpartition(": ")[2] or text
    if isinstance(error, known.TimeoutError | TimeoutError):
        return "no answer in time"
    if isinstance(error, known.ProtocolError | ConnectionError):
        return "the connection was cut"
    return f"{type(error).__name__}: {text}"
