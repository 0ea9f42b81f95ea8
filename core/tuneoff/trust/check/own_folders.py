"""Folders that a conformance run has for itself, so that whatever it leaves there is known to be its own."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuneoff.run.supervisor.guardian import Announce, temporary_folder
from tuneoff.trust.check.footprint import Left, unused

LOOKED_INTO = (".ray", "ray_results", "syne-tune", ".optuna")  # folders of frameworks in the home folder


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFolders:
    """A temporary folder, and a home folder with links to all that the real one has.

    `inside`: names of folders in the home folder that are no links, but have links to what the real ones have.
    """

    temporary: str
    home: str
    inside: tuple[str, ...] = ()

    def enter(self) -> None:
        """Let this process and all that it starts use them."""
        os.environ["TMPDIR"], os.environ["HOME"] = self.temporary, self.home
        tempfile.tempdir = None  # asked for anew

    def left(self) -> list[Left]:
        """Return what was made in them and is used by nobody."""
        files = [Left("temporary file", str(path)) for path in sorted(unused(Path(self.temporary).iterdir()))]
        home = Path(self.home)
        links = {home / name for name in self.inside}
        made = [path for folder in (home, *links) for path in _entries(folder) if not path.is_symlink() and path not in links]
        return files + [Left("home file", f"~/{path.relative_to(home)}") for path in sorted(made)]


@contextlib.contextmanager
def own_folders(announce: Announce = lambda folder: None) -> Iterator[OwnFolders]:
    """Make them, with short paths (sockets: 107 bytes), announce them, and remove them."""
    with temporary_folder(announce, "tk") as base:
        (base / "t").mkdir()
        yield OwnFolders(temporary=str(base / "t"), home=str(base / "h"), inside=_make_home(base / "h", Path.home()))


def _make_home(home: Path, real: Path) -> tuple[str, ...]:
    home.mkdir()
    inside = []
    for path in _entries(real):
        if path.name in LOOKED_INTO and path.is_dir():
            inside.append(path.name)
            (home / path.name).mkdir()
            for entry in _entries(path):
                (home / path.name / entry.name).symlink_to(entry)
        else:
            (home / path.name).symlink_to(path)
    return tuple(inside)


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return list(folder.iterdir())
    return []
