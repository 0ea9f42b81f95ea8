"""Refusals of the API server: exceptions whose body is the Kubernetes `Status` that a client of a real cluster gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from katib_emulation.objects import Kind

VALIDATOR = "validator.experiment.katib.kubeflow.org"


class StatusError(Exception):
    """A request was refused; `code` is the HTTP status, and `body()` the answer. A denial by a webhook has no reason."""

    def __init__(self, code: int, reason: str | None, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def body(self) -> dict[str, Any]:
        """Return the Kubernetes Status, without its `details`."""
        head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        return {**head, **({"reason": self.reason} if self.reason is not None else {}), "code": self.code}


class StorageError(Exception):
    """The folder's database cannot be read or written; the text is one line for the user."""


def not_found(kind: Kind, name: str) -> StatusError:
    """404: the object (or the namespace for it) does not exist."""
    return StatusError(404, "NotFound", f'{kind.resource} "{name}" not found')


def bad_request(message: str) -> StatusError:
    """400: the request itself is malformed."""
    return StatusError(400, "BadRequest", message)


def forbidden(kind: Kind, name: str, why: str) -> StatusError:
    """403: a right is missing, or the namespace is being deleted."""
    about = f'{kind.resource} "{name}"' if name else kind.resource
    return StatusError(403, "Forbidden", f"{about} is forbidden: {why}")


def invalid(kind: Kind, name: str, causes: Sequence[str]) -> StatusError:
    """422: fields of the object break a rule; each cause begins with its field."""
    title = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    whole = causes[0] if len(causes) == 1 else f"[{', '.join(causes)}]"
    return StatusError(422, "Invalid", f'{title} "{name}" is invalid: {whole}')


def denied(message: str, webhook: str = VALIDATOR) -> StatusError:
    """400 without a reason: an admission webhook of Katib refused the object."""
    return StatusError(400, None, f'admission webhook "{webhook}" denied the request: {message}')


def internal(message: str) -> StatusError:
    """500: the server failed."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")
