"""Refusals of the API server: exceptions whose body is the Kubernetes `Status` that a client of a real cluster gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from katib_emulation.kinds import Kind

VALIDATOR = "validator.experiment.katib.kubeflow.org"


class ApiError(Exception):
    """A request was refused; `code` is the HTTP status, and `body()` the answer."""

    def __init__(self, code: int, reason: str | None, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    def body(self) -> dict[str, Any]:
        """Return the Kubernetes Status; a denial by a webhook has no reason, as on a real cluster."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason is not None:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = dict(self.details)
        return {**status, "code": self.code}


def details_of(kind: Kind, name: str) -> dict[str, Any]:
    """Return the `details` that name an object."""
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def not_found(kind: Kind, name: str) -> ApiError:
    """404: the object (or the namespace for it) does not exist."""
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', details_of(kind, name))


def unknown_path() -> ApiError:
    """404: no such resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str) -> ApiError:
    """409: an object of that name exists."""
    return ApiError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', details_of(kind, name))


def conflict(kind: Kind, name: str) -> ApiError:
    """409: the change is based on an older version of the object."""
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {kind.resource} "{name}": {text}', details_of(kind, name))


def invalid(kind: Kind, name: str, causes: Sequence[tuple[str, str]]) -> ApiError:
    """422: fields of the object break a rule; each cause is (field, text)."""
    listed = [{"reason": "FieldValueInvalid", "message": text, "field": field} for field, text in causes]
    texts = [f"{field}: {text}" for field, text in causes]
    whole = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": listed}
    return ApiError(422, "Invalid", f'{kind.title} "{name}" is invalid: {whole}', {k: v for k, v in details.items() if v})


def bad_request(message: str) -> ApiError:
    """400: the request itself is malformed."""
    return ApiError(400, "BadRequest", message)


def terminating(kind: Kind, name: str, namespace: str) -> ApiError:
    """403: nothing is created in a namespace that is being deleted."""
    message = f"namespace {namespace} is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return ApiError(
        403, "Forbidden", f'{kind.resource} "{name}" is forbidden: {why}', {**details_of(kind, name), "causes": [cause]}
    )


def denied(message: str, webhook: str = VALIDATOR) -> ApiError:
    """400 without a reason: an admission webhook of Katib refused the object."""
    return ApiError(400, None, f'admission webhook "{webhook}" denied the request: {message}')


def gone(version: int, oldest: int) -> ApiError:
    """410: a watch asks for changes that are no longer kept; the client has to list again."""
    return ApiError(410, "Expired", f"too old resource version: {version} ({oldest})")


def method_not_allowed() -> ApiError:
    """405: the path exists, the verb does not."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def internal(message: str) -> ApiError:
    """500: the server failed."""
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})
