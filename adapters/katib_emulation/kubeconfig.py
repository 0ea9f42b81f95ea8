"""The kubeconfig of the emulated server, and the token in it.

The API runs commands for whoever may create an experiment. Loopback alone keeps out neither other users of the machine nor web
pages, so requests carry a token, which only the owner of the files can read.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path

from katib_emulation.storage.journal import is_in_use

NAME = "emulated"
MARK = "tuneoff-adapters-katib-emulated"  # the extension of the cluster's entry that names the server's folder
LONGEST_BYTES = 65536  # of a kubeconfig that a server has written


class KubeconfigError(Exception):
    """The kubeconfig cannot be put where it should be; the text is one line for the user."""


def token_of(folder: Path) -> str:
    """Return the folder's token, made at the first start: clients stay valid when the server is started again.

    Raises:
        OSError: it cannot be kept.
    """
    path = folder / "token"
    if path.exists() and (known := path.read_text().strip()):
        return known
    token = secrets.token_urlsafe(32)
    _private(path, token + "\n").replace(path)
    return token


class Kubeconfig:
    """The file at `path`, of the server whose objects are in `folder`.

    It appears when requests are served and goes at the end. A file that no server has written is never touched: the path may be
    that of the user's own kubeconfig.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path.absolute()
        self._folder = folder.absolute()
        self._text = ""

    def claim(self) -> None:
        """Remove what a server that was killed has left there.

        Raises:
            KubeconfigError: the file is of somebody else, or of a server that runs.
            OSError: it cannot be removed.
        """
        if not os.path.lexists(self.path):
            return
        owner = _owner(self.path)
        if owner is None:
            raise KubeconfigError(
                f"--kubeconfig {self.path} is there and was not written by this program, so it stays as it is; "
                "give a path where no file is"
            )
        if is_in_use(owner):
            raise KubeconfigError(
                f"another server uses the folder {owner}, and {self.path} is its kubeconfig; "
                "end it, or give another folder and kubeconfig"
            )
        self.path.unlink(missing_ok=True)

    def write(self, url: str, token: str) -> None:
        """Write it for the server at `url`, atomically, readable by its owner only (JSON, which is YAML too).

        Raises:
            KubeconfigError: a file has come there meanwhile.
            OSError: it cannot be written.
        """
        text = json.dumps(_config(url, token, self._folder), indent=2) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = _private(self.path, text)
        if os.path.lexists(self.path):
            fresh.unlink()
            raise KubeconfigError(
                f"--kubeconfig {self.path} was made by somebody else meanwhile, so it stays as it is; give another path"
            )
        fresh.replace(self.path)
        self._text = text

    def remove(self) -> bool:
        """Remove it if it is still what was written; return whether nothing of it is left."""
        with contextlib.suppress(OSError, UnicodeDecodeError):  # it is gone, or something else has taken its place
            if self._text and not self.path.is_symlink() and self.path.read_text() == self._text:
                self.path.unlink()
        return not (self._text and os.path.lexists(self.path))


def _owner(path: Path) -> Path | None:
    """Return the folder of the server that wrote the file; None: no server did, or it was changed in a way that matters."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LONGEST_BYTES:
            return None
        found = json.loads(path.read_text())
        (entry,) = found["clusters"]
        (extension,) = entry["cluster"]["extensions"]
        users = [user["name"] for user in found["users"]]
        if (entry["name"], users, extension["name"]) != (NAME, [NAME], MARK):
            return None
        return Path(extension["extension"]["folder"])
    except (OSError, ValueError, LookupError, TypeError):  # not readable, or no kubeconfig of a server
        return None


def _config(url: str, token: str, folder: Path) -> dict[str, object]:
    mark = {"name": MARK, "extension": {"folder": str(folder)}}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": {"server": url, "extensions": [mark]}}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME, "namespace": "default"}}],
        "current-context": NAME,
    }


def _private(path: Path, text: str) -> Path:
    """Return a new file beside `path`, readable by its owner only."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    return fresh
