"""Who may read: on loopback by the name that the browser asked for, anywhere else by a token."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")
HTTP_PORT = 80
MOST_FIELDS = 10  # of a query


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The rule of one server. `hosts` None: any name; `token` None: none is needed."""

    hosts: frozenset[str] | None
    token: str | None
    cookie: str  # the name of the cookie; it has the port, as cookies of one host are of all its ports

    def allows_host(self, headers: Sequence[str]) -> bool:
        """Tell whether the `Host` headers name this server: a page of another name that resolves to loopback does not."""
        if len(headers) != 1:
            return False
        return self.hosts is None or headers[0].strip().lower() in self.hosts

    def allows(self, query: str, cookies: Sequence[str]) -> bool:
        """Tell whether a request has the token, in its query or as cookie."""
        return self.token is None or self.is_in_query(query) or any(self._is_token(value) for value in self._values(cookies))

    def is_in_query(self, query: str) -> bool:
        """Tell whether the query has the token."""
        try:
            values = parse_qs(query, max_num_fields=MOST_FIELDS).get("token", [])
        except ValueError:
            return False
        return self.token is not None and any(self._is_token(value) for value in values)

    def set_cookie(self) -> str:
        """Return what makes a browser keep the token for this page alone."""
        return f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode(errors="replace"), (self.token or "").encode())

    def _values(self, cookies: Sequence[str]) -> list[str]:
        pairs = (part.partition("=") for header in cookies for part in header.split(";"))
        return [value.strip() for name, _, value in pairs if name.strip() == self.cookie]


def access_of(address: str, port: int) -> Access:
    """Return the rule for a server that is bound to an address (as text of the socket) and port."""
    cookie = f"tuneoff_{port}"
    if not ipaddress.ip_address(address.partition("%")[0]).is_loopback:
        return Access(hosts=None, token=secrets.token_urlsafe(32), cookie=cookie)
    own = f"[{address}]" if ":" in address else address
    names = {*LOOPBACK_NAMES, own}
    hosts = {f"{name}:{port}" for name in names} | (names if port == HTTP_PORT else set())
    return Access(hosts=frozenset(hosts), token=None, cookie=cookie)
