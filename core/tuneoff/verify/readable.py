"""What stands in the way of reading a file: it is no regular file, it has a key twice, it is nested too deeply."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TOO_DEEP = "is nested too deeply to be read"
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class SpecialFile(NamedTuple):
    """An entry that must not be opened: a pipe would be waited for, a device may never end."""

    name: str
    kind: str


def special_files(*folders: Path) -> Iterator[SpecialFile]:
    """Yield what is neither a file nor a folder nor a link to one, by its path below the first folder."""
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                found = sorted(entry.path for entry in entries if _is_special(entry))
        except OSError:  # told by whoever needs it
            continue
        for path in found:
            kind = _special_kind(path) if is_utf8(path) else "named otherwise than in UTF-8"
            if kind is not None:
                yield SpecialFile(Path(path).relative_to(folders[0]).as_posix(), kind)


def _is_special(entry: os.DirEntry[str]) -> bool:
    return not (entry.is_file() or entry.is_dir()) or not is_utf8(entry.name)


def is_utf8(name: str) -> bool:
    """Tell whether a file's name is UTF-8, as all names are that tuneoff gives; no record can hold another one."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def load_json(content: bytes) -> tuple[Any, list[str]]:
    """Return a JSON value and the keys that stand twice in one object, of which readers take one or the other.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    twice: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        return json.loads(content, object_pairs_hook=collect, parse_constant=_refuse), twice
    except RecursionError as error:
        raise ValueError(TOO_DEEP) from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def _special_kind(path: str) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    except OSError:  # a link to nothing: opening it says so
        return None
