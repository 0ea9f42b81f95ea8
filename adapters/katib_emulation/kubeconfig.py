"""The kubeconfig of the emulated server, and the token in it.

The API runs commands for whoever may create an experiment. Loopback alone keeps out neither other users of the machine nor web
pages, so requests carry a token, which only the owner of the files can read.
"""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from katib_emulation.storage.journal import is_in_use

NAME = "emulated"
MARK = "tuneoff-adapters-katib-emulated"  # the extension of the cluster's entry that names the server's folder


class KubeconfigError(Exception):
    """The kubeconfig cannot be put where it should be; the text is one line for the user."""


def token_of(folder: Path) -> str:
    """Return the folder's token, made at the first start: clients stay valid when the server is started again."""
    path = folder / "token"
    if not path.exists():
        _write(path, secrets.token_urlsafe(32))
    return path.read_text()


def claim(path: Path) -> None:
    """Remove the kubeconfig that a server that was killed has left at `path`. The path may be that of the user's own file.

    Raises:
        KubeconfigError: the file is of somebody else, or of a server that runs.
    """
    if not os.path.lexists(path):
        return
    owner = _owner(path)
    if owner is None:
        raise KubeconfigError(
            f"--kubeconfig {path} is there and was not written by this program, so it stays as it is; "
            "give a path where no file is"
        )
    if is_in_use(owner):
        raise KubeconfigError(
            f"another server uses the folder {owner}, and {path} is its kubeconfig; end it, or give another folder and kubeconfig"
        )
    path.unlink()


def write(path: Path, url: str, token: str, folder: Path) -> None:
    """Write the kubeconfig of the server at `url`, atomically, readable by its owner only (JSON, which is YAML too)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mark = {"name": MARK, "extension": {"folder": str(folder.absolute())}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url, "extensions": [mark]}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    _write(path, json.dumps(config, indent=2) + "\n")


def remove(path: Path, folder: Path) -> None:
    """Remove the kubeconfig at the end, unless somebody has put another file there."""
    if _owner(path) == folder.absolute():
        path.unlink()


def _owner(path: Path) -> Path | None:
    """Return the folder of the server that wrote the file, and nothing else in it; None: no server did."""
    try:
        found = json.loads(path.read_text())
        (cluster,), (user,) = found["clusters"], found["users"]
        (extension,) = cluster["cluster"]["extensions"]
        if path.is_symlink() or (extension["name"], user["name"]) != (MARK, NAME):
            return None
        return Path(extension["extension"]["folder"])
    except (OSError, ValueError, LookupError, TypeError):  # it is gone, not readable, or no kubeconfig of a server
        return None


def _write(path: Path, text: str) -> None:
    """Write a file that is not there yet."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(text)
    try:
        os.link(fresh, path)  # where a file has come to `path` meanwhile, that one stays
    finally:
        fresh.unlink()
