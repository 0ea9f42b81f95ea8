"""The HTTP API of a Prometheus server (or one that speaks it: Thanos, Mimir, VictoriaMetrics), read only; credentials."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from tuneoff.meter import MeterError

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector


OPTIONS = ("token_variable", "username", "password_variable")
MOST_BYTES = 512 * 1024 * 1024  # of one answer
MOST_TOLD = 600  # characters of what a server says that are repeated


class PrometheusApi:
    """Queries of one server. Every failure is a `MeterError` that names the server and the way out."""

    def __init__(self, url: str, *, authorization: str = "", timeout_seconds: float = 10.0) -> None:
        """Connect to nothing yet. `authorization` is the HTTP header; `timeout_seconds` bounds each query as a whole."""
        self.url = url.rstrip("/")
        self.warnings: dict[str, None] = {}  # of the answers so far, in order: a part of the data may be missing
        self._authorization, self._timeout = authorization, timeout_seconds
        self._opener: OpenerDirector | None = None

    def clock_offset(self) -> tuple[float, float]:
        """Return the server's clock minus this host's, in seconds, and how far that may be off (half of the round trip)."""
        before = time.time()
        answer = self._ask("query", {"query": "time()"})
        after = time.time()
        try:
            server = float(answer["result"][1])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise self._strange("the query `time()` gave no time") from error
        return server - (before + after) / 2, (after - before) / 2

    def vector(self, query: str) -> list[dict[str, Any]]:
        """Return the series of an instant query, each {"metric": labels, "value": [seconds, text]}."""
        return self._series(self._ask("query", {"query": query}), "vector")

    def matrix(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        """Return the series of a range query, each {"metric": labels, "values": [[seconds, text], ...]}.

        The server refuses more than 11 000 points of a series.
        """
        window = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:.3f}"}
        return self._series(self._ask("query_range", window), "matrix")

    def _series(self, answer: dict[str, Any], kind: str) -> list[dict[str, Any]]:
        series = answer.get("result")
        if answer.get("resultType") != kind or not isinstance(series, list):
            raise self._strange(f"a {kind} was asked for, but a {answer.get('resultType')!r} came")
        if not all(isinstance(one, dict) and isinstance(one.get("metric"), dict) for one in series):
            raise self._strange(f"a {kind} has series without labels")
        return series

    def _ask(self, endpoint: str, parameters: Mapping[str, str]) -> dict[str, Any]:
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import Request

        headers = {"Accept": "application/json"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        request = Request(f"{self.url}/api/v1/{endpoint}", data=urlencode(parameters).encode(), headers=headers)  # POST
        deadline = time.monotonic() + self._timeout
        try:
            with self._open().open(request, timeout=self._timeout) as response:
                content = self._read(response, deadline)
        except HTTPError as error:
            with error:
                raise self._refused(error.code, error.read(65536), error.headers.get("Location")) from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, TimeoutError):
                raise self._unreachable(f"it did not answer within {self._timeout:g} s") from error
            text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise self._unreachable(text) from error
        return self._data(content)

    def _read(self, response: HTTPResponse, deadline: float) -> bytes:
        """Read an answer to its end, within the deadline even where it comes byte by byte."""
        content = bytearray()
        while chunk := response.read1(1 << 20):
            content += chunk
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(content) > MOST_BYTES:
                raise MeterError(
                    f"an answer of {self.url} exceeds {MOST_BYTES >> 20} MiB; name the `nodes`, or set `step_seconds`"
                )
        return bytes(content)

    def _data(self, content: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            start = " ".join(content[:60].decode(errors="replace").split())
            raise self._strange(f"the answer is no JSON, but begins with {start!r}") from error
        if not isinstance(answer, dict) or answer.get("status") not in ("success", "error"):
            raise self._strange("the answer has no `status`")
        if answer["status"] == "error":
            raise self._refused(200, content, None)
        data = answer.get("data")
        if not isinstance(data, dict):
            raise self._strange("the answer has no `data`")
        warnings = answer.get("warnings")  # not its `infos`: they are advice on the query
        for text in warnings if isinstance(warnings, list) else ():
            self.warnings[self._told(str(text))] = None
        return data

    def _refused(self, code: int, content: bytes, location: str | None) -> MeterError:
        """Return the error for a refusal, with the server's own words where it has some."""
        try:
            told = str(json.loads(content)["error"])
        except (ValueError, KeyError, TypeError, RecursionError):
            told = ""
        if told:
            way_out = "correct the query or the options of `power`"
        elif code in (401, 403):
            told, way_out = "access is denied", "see `token_variable`, and `username` with `password_variable`"
        elif location:
            told, way_out = f"it redirects to {location}", "give that address as `url`"
        else:
            told = _plain(content) or "no reason is given"
            way_out = "check that `url` is the server's root (what comes before /api/v1), and whether it is http or https"
        return MeterError(f"Prometheus at {self.url} refused a query (HTTP {code}): {self._told(told)}; {way_out}")

    def _unreachable(self, reason: str) -> MeterError:
        way_out = "start it, correct `url`, or take another meter"
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            way_out = "for an authority of your own export SSL_CERT_FILE=FILE with its certificates"
        elif "WRONG_VERSION_NUMBER" in reason or "record layer failure" in reason:
            way_out = "it speaks no https: give `url` with http"
        return MeterError(f"Prometheus must be reachable at {self.url}, but: {self._told(reason)}; {way_out}")

    def _strange(self, what: str) -> MeterError:
        problem = self._told(what)
        return MeterError(f"{self.url} must answer as Prometheus does, but {problem}; check that `url` is the server's root")

    def _told(self, text: str) -> str:
        """Return a text of others as one line that does not hold the secret, should a server or a proxy repeat it."""
        secret = self._authorization.partition(" ")[2]
        return " ".join((text.replace(secret, "***") if secret else text).split())[:MOST_TOLD]

    def _open(self) -> OpenerDirector:
        """Return the opener: no proxy for this machine's own addresses, and no redirects, which would carry the token away."""
        if self._opener is None:
            from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

            class Refuse(HTTPRedirectHandler):
                def redirect_request(self, *arguments: Any, **named: Any) -> None:
                    return None

            direct = [ProxyHandler({})] if is_loopback(urlsplit(self.url).hostname or "") else []
            self._opener = build_opener(Refuse, *direct)
        return self._opener


def _plain(content: bytes) -> str:
    """Return the first line of a plain text, "" for a page."""
    lines = content.decode(errors="replace").strip().splitlines()
    return lines[0][:200] if lines and not lines[0].lstrip().startswith("<") else ""


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def authorization(options: Mapping[str, Any]) -> str:
    """Return the value of the HTTP header `Authorization`, "" for none; the options hold names of variables, never a secret.

    Raises:
        MeterError: an option is wrong, a variable is not set, or both ways are asked for. No message holds a secret.
    """
    token, name, password = (options.get(option) for option in OPTIONS)
    if token is not None and (name, password) != (None, None):
        raise MeterError("meter prometheus: give either `token_variable`, or `username` with `password_variable`; remove one")
    if (name is None) != (password is None):
        raise MeterError("meter prometheus: `username` and `password_variable` must be given together; add the other")
    if token is not None:
        secret = _secret("token_variable", token)
        if not secret.isascii() or any(character.isspace() for character in secret):
            raise MeterError(f"meter prometheus: the token in {token!r} must be one ASCII word; export it again")
        return f"Bearer {secret}"
    if name is not None:
        if not isinstance(name, str) or not name or ":" in name:
            raise MeterError(f"meter prometheus: `username` must be a name without a colon, but got {name!r}")
        return "Basic " + base64.b64encode(f"{name}:{_secret('password_variable', password)}".encode()).decode()
    return ""


def _secret(option: str, variable: Any) -> str:
    if not isinstance(variable, str):
        raise MeterError(f"meter prometheus: `{option}` must be a text, but got {variable!r}")
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise MeterError(f"meter prometheus: `{option}` names {variable!r}, which is not set; export {variable}=...")
    return secret
