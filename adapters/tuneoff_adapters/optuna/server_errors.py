"""Drivers' errors that say that a storage's server is away: told by their names, so that no driver is imported."""

from __future__ import annotations

from typing import Any

from tuneoff.base.tracebacks import origins
from tuneoff.errors import InfrastructureError

_REDIS = {"redis.exceptions.ConnectionError", "redis.exceptions.TimeoutError"}
_POSTGRESQL = {"psycopg.OperationalError", "psycopg2.OperationalError"}
_GRPC = "grpc.RpcError"


def server_away(error: BaseException) -> InfrastructureError | None:
    """Return what a user is told where an error, or what it came of, says that the server is away; else None."""
    for cause in origins(error):
        if (message := _away(cause)) is not None:
            rule = "the server of option `storage` must answer until the run's end"
            return InfrastructureError(f"{rule}, but its driver says: {' '.join(message.split())}")
    return None


def _away(error: Any) -> str | None:
    """Return the driver's words, which name host and port, but no password; None: it is another error."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    if _GRPC in names:
        return str(error.details()) if error.code().name == "UNAVAILABLE" else None
    if names & _POSTGRESQL:  # none from the server: no connection; class 08: a lost one; 57P: it shuts down or starts
        state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or ""
        return str(error) if state[:2] in ("", "08") or state.startswith("57P") else None
    return str(error) if names & _REDIS else None
