"""How the meter shows a server who asks: a bearer token, or a name with a password; secrets come from the environment alone."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any

from tuneoff.meter import MeterError

OPTIONS = ("token_variable", "username", "password_variable")


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
