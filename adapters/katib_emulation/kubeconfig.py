"""The kubeconfig of the emulated server, with the token that each request needs.

The API runs commands for whoever may create an experiment. Loopback alone keeps out neither other users of the machine nor web
pages; the token can be read by the owner of the file alone.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from katib_emulation.errors import StorageError
from katib_emulation.store import is_in_use

NAME = "emulated"
MARK = "tuneoff-adapters-katib-emulated"  # the extension of the cluster's entry that names the server's folder


def claim(path: Path) -> None:
    """Remove the kubeconfig that a server that was killed has left at `path`. The path may be that of the user's own file.

    Raises:
        StorageError: the file is of somebody else, or of a server that runs.
    """
    if not os.path.lexists(path):
        return
    owner = _owner(path)
    if owner is None:
        why = "was not written by this program, so it stays as it is; give a path where no file is"
        raise StorageError(f"--kubeconfig {path} is there and {why}")
    if is_in_use(owner):
        why = f"and {path} is its kubeconfig; end it, or give another folder and kubeconfig"
        raise StorageError(f"another server uses the folder {owner}, {why}")
    path.unlink()


def write(path: Path, url: str, token: str, folder: Path) -> None:
    """Write the kubeconfig of the server at `url`, at once, readable by its owner only (JSON, which is YAML too)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cluster = {"server": url, "extensions": [{"name": MARK, "extension": {"folder": str(folder)}}]}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
        file.write(json.dumps(config, indent=2) + "\n")
    try:
        os.link(fresh, path)  # where a file has come to `path` meanwhile, that one stays
    finally:
        fresh.unlink()


def remove(path: Path, folder: Path) -> None:
    """Remove the kubeconfig at the end, unless somebody has put another file there."""
    if _owner(path) == folder:
        path.unlink()


def _owner(path: Path) -> Path | None:
    """Return the folder of the server that wrote the file, and nothing else in it; None: no server did."""
    try:
        config = json.loads(path.read_text())
        (cluster,), (user,) = config["clusters"], config["users"]
        (extension,) = cluster["cluster"]["extensions"]
        is_own = not path.is_symlink() and (extension["name"], user["name"]) == (MARK, NAME)
        return Path(extension["extension"]["folder"]) if is_own else None
    except (OSError, ValueError, LookupError, TypeError):  # it is gone, not readable, or no kubeconfig of a server
        return None
