"""Files that are none: folders, pipes, devices without an end, links in circles, files nobody may read."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

OddFile = Callable[[Path, random.Random], None]  # makes it at a path that is free
HUGE_BYTES = 1_300_000_000  # more than a case may have of memory


def folder(path: Path, chance: random.Random) -> None:
    path.mkdir()
    if chance.random() < 0.5:
        (path / "end.json").write_text("{}")


def pipe(path: Path, chance: random.Random) -> None:
    os.mkfifo(path)


def endless(path: Path, chance: random.Random) -> None:
    path.symlink_to(chance.choice(("/dev/zero", "/dev/urandom", "/dev/full")))


def no_device(path: Path, chance: random.Random) -> None:
    path.symlink_to(
        chance.choice(("/dev/null", "/proc/self/mem", "/proc/self/maps", "/dev/tty", "/proc/self/fd/0", "/proc/self/task"))
    )


def circle(path: Path, chance: random.Random) -> None:
    path.symlink_to(path.name)


def dangling(path: Path, chance: random.Random) -> None:
    path.symlink_to("nowhere")


def to_parent(path: Path, chance: random.Random) -> None:
    path.symlink_to(chance.choice((".", "..")), target_is_directory=True)


def unreadable(path: Path, chance: random.Random) -> None:
    path.write_text("{}")
    path.chmod(0)


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def huge(path: Path, chance: random.Random) -> None:
    """A file with a hole: large to read, and no block of the disk is used."""
    with path.open("wb") as file:
        file.truncate(HUGE_BYTES)


def binary(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(500))


ODD_FILES: dict[str, OddFile] = {
    "folder": folder,
    "pipe": pipe,
    "endless": endless,
    "device": no_device,
    "circle of links": circle,
    "dangling link": dangling,
    "link to a folder": to_parent,
    "unreadable": unreadable,
    "empty": empty,
    "huge": huge,
    "binary": binary,
}
