"""Drivers' errors that say that a storage's server is away: told by their names, so that no driver is imported."""

from __future__ import annotations

from typing import Any

from tuneoff.base.tracebacks import origins
from tuneoff.errors import InfrastructureError

_REDIS = {"redis.exceptions.ConnectionError", "redis.exceptions.TimeoutError"}
_POSTGRESQL = {"psycopg.OperationalError", "psycopg2.OperationalError"}
_HTTP = {"requests.exceptions.ConnectionError", "requests.exceptions.Timeout"}
_GRPC = "grpc.RpcError"


def server_away(error: BaseException) -> InfrastructureError | None:
    """Return what a user is told where an error, or what it came of, says that the server is away; else None.

    It has the driver's words, which name host and port, but no password.
    """
    cause: Any
    for cause in origins(error):
        names, message = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(cause).__mro__}, str(cause)
        if _GRPC in names:
            is_away, message = cause.code().name == "UNAVAILABLE", str(cause.details())
        elif names & _POSTGRESQL:  # none from the server: no connection; class 08: a lost one; 57P: it shuts down or starts
            state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
            is_away = state[:2] in ("", "08") or state.startswith("57P")
        else:
            is_away = bool(names & (_REDIS | _HTTP))
        if is_away:
            rule = "the server of option `storage` must answer until the run's end"
            return InfrastructureError(f"{rule}, but its driver says: {' '.join(message.split())}")
    return None
