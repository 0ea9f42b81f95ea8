"""What the API server answered, or that it did not: each as one line. Imports neither the SDK nor its clients."""

from __future__ import annotations

import json

from tuneoff.errors import InfrastructureError, StepError

REPEATED = frozenset({429, 500, 502, 503, 504})  # a server that is starting, busy, or waits for its etcd or a webhook


class ApiError(StepError):
    """The API server refused a request; `message` is its own text, `status` the HTTP status, `reason` Kubernetes' word for it."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(f"{request}: the API server answered {status}{f' {reason}' if reason else ''}: {message}")
        self.request, self.status, self.reason, self.message = request, status, reason, message
        self.short = f"the API server answered {status}{f' {reason}' if reason else ''}: {one_line(message, 120)}"


class Missing(ApiError):
    """404: there is no such object (or no such resource)."""


class Conflict(ApiError):
    """409: the object exists already, or was changed meanwhile."""


class Failing(ApiError, InfrastructureError):
    """429 or 5xx, each time that it was asked again: the cluster's own trouble, not a refusal."""


class Unreachable(InfrastructureError):
    """The API server could not be reached, or did not answer in time; `short` says so without request, address and way out."""

    def __init__(self, text: str, short: str = "") -> None:
        super().__init__(text)
        self.short = short or text


def api_error(request: str, status: int, reason: str, body: str | bytes | None) -> ApiError:
    """Return the error for an answer: a Kubernetes `Status` as JSON, or whatever a proxy wrote.

    `reason` is the HTTP reason phrase, which is used where the body has no message.
    """
    text = body.decode(errors="replace") if isinstance(body, bytes) else body or ""
    message, word = text, ""
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None  # not from the API server itself: shown as it is
    if isinstance(parsed, dict):
        message, word = str(parsed.get("message") or text), str(parsed.get("reason") or "")
    message = one_line(message) or one_line(reason) or "no message"
    kind = Failing if status in REPEATED else {404: Missing, 409: Conflict}.get(status, ApiError)
    return kind(request, status, word, message)


def one_line(text: object, most: int = 1000) -> str:
    """Return a server's text (None: there is none) as one line of at most `most` characters."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= most else line[: most - 3] + "..."
