"""The kubeconfig of the emulated server, and the token in it.

The API runs commands for whoever may create an experiment. Loopback alone keeps out neither other users of the machine nor web
pages, so requests carry a token, which only the owner of the files can read.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

NAME = "emulated"


def token_of(folder: Path) -> str:
    """Return the folder's token, made at the first start: clients stay valid when the server is started again.

    Raises:
        OSError: it cannot be kept.
    """
    path = folder / "token"
    if path.exists() and (known := path.read_text().strip()):
        return known
    token = secrets.token_urlsafe(32)
    _write_private(path, token + "\n")
    return token


def write_kubeconfig(path: Path, url: str, token: str) -> None:
    """Write a kubeconfig for the server at `url`, atomically, readable by its owner only (JSON, which is YAML too).

    Raises:
        OSError: it cannot be written.
    """
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_private(path, json.dumps(config, indent=2) + "\n")


def _write_private(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    fresh.replace(path)
