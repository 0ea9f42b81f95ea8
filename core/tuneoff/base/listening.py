"""Why a port to listen on cannot be had, in one line."""

from __future__ import annotations

import errno


def unusable(address: str, port: int, error: Exception, *, port_option: str, address_option: str) -> str:
    """Return why nothing can be served there: rule, value, way out; the options are those of the command that was asked."""
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return f"`{port_option}` must be free on {address}, but {port} is in use; take another one, or 0 for any"
    if number in (errno.EACCES, errno.EPERM):
        return (
            f"`{port_option}` must be allowed to this user, but {port} on {address} is not; take one from 1024 on, or 0 for any"
        )
    reason = getattr(error, "strerror", None) or str(error)
    return f"`{address_option}` must be an address of this host, but got {address!r} with port {port}: {reason}"
