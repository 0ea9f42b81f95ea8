"""The manifest of a bundle: its format version, which tuneoff made it, what it holds and lacks, and the SHA-256 of every file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Annotated

import msgspec

from tuneoff.base.files import PLAIN_NAME
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import UNPACKED

FORMAT_VERSION = 1  # history: 1 = first
KIND = "tuneoff bundle"
MANIFEST, EXPERIMENT = UNPACKED
README = "README.txt"
LOCK_JSON, LOCK_TXT = "lock.json", "lock.txt"
DATA, ENVIRONMENT = "data.json", "environment.json"
RESULTS = "results"  # a results folder inside the bundle
LONGEST_MANIFEST = 64 * 1024 * 1024  # bytes; a file takes about 150
BLOCK = 4096  # bytes that a folder, or the rest of a file's last block, takes at most
MOST_BYTES = 1 << 60  # of a file
MOST_PARTS = 16  # of a path; an honest one has half of them
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_ODD = re.compile(r"[\x00-\x1f\\:\ud800-\udfff]")


class BundledFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a bundle: its path below the bundle's top folder, its size and SHA-256."""

    path: str
    size_bytes: Annotated[int, msgspec.Meta(ge=0, le=MOST_BYTES)]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}(?![\s\S])")]


class BundleManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle is. Nothing of when or where it was made: the same folder gives the same bundle."""

    format_version: int = FORMAT_VERSION
    kind: str = KIND
    name: Annotated[str, msgspec.Meta(pattern=PLAIN_NAME)]  # of the experiment; the bundle's top folder
    plan_id: str
    tuneoff: str  # version that made the bundle
    tuneoff_code: str = ""  # its `code_digest`
    verified: bool  # every number followed from the raw files when it was made
    problems: tuple[str, ...] = ()  # why not, the first ones
    checkpoints: bool = False  # whether the tested checkpoints are in it
    missing: tuple[str, ...] = ()  # what the plan has and the bundle lacks, one line each
    files: tuple[BundledFile, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files unpacked."""
        return sum(file.size_bytes for file in self.files)

    @property
    def disk_bytes(self) -> int:
        """What all files unpacked take on a disk at most: with their folders, as if no two files shared one."""
        return sum(disk_bytes(file.path, file.size_bytes) for file in self.files)

    def encode(self) -> bytes:
        """Return the text of `manifest.json`."""
        return (json.dumps(msgspec.to_builtins(self), indent=1) + "\n").encode()


class _ManifestHeader(msgspec.Struct):
    kind: str
    format_version: int


def disk_bytes(path: str, size_bytes: int) -> int:
    """Return what a file takes on a disk at most, with the folders of its path."""
    return size_bytes + BLOCK * (1 + path.count("/"))


def decode(content: bytes, source: str) -> BundleManifest:
    """Read a manifest; `source` names the bundle in errors.

    Raises:
        ResultsError: it is none, of another format version, or lists what no bundle may hold.
    """
    try:
        header = msgspec.json.decode(content, type=_ManifestHeader)
    except _UNREADABLE as error:
        raise not_a_bundle(source, f"its {MANIFEST} cannot be read ({error})") from error
    if header.kind != KIND:
        raise not_a_bundle(source, f"its {MANIFEST} is that of another kind of file ({header.kind[:40]!r})")
    if header.format_version != FORMAT_VERSION:
        version = str(header.format_version)[:20]
        raise ResultsError(
            f"{source} has bundle format version {version}, but this tuneoff reads version {FORMAT_VERSION}; "
            "use the tuneoff that made it"
        )
    try:
        manifest = msgspec.json.decode(content, type=BundleManifest)
    except _UNREADABLE as error:
        raise ResultsError(f"{source} is damaged: {MANIFEST}: {error}; get it again") from error
    wrong = next(wrong_files(manifest.files), None)
    if wrong is not None:
        raise ResultsError(f"{source} is refused: {MANIFEST}: {wrong}; get it from a source you trust")
    return manifest


def top_folder(name: str) -> str:
    """Return the name of a bundle's top folder: the experiment's, as far as that is a file name everywhere."""
    text = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip("._-")[:100]
    return text if re.match(PLAIN_NAME, text) else "bundle"


def is_safe(path: str) -> bool:
    """Tell whether a path stays below the folder that it is relative to, on every system."""
    if not path or len(path) > 1024 or _ODD.search(path) is not None:
        return False
    parts = path.split("/")
    return not PurePosixPath(path).is_absolute() and not set(parts) & {"", ".", ".."}


def not_a_bundle(source: str, why: str) -> ResultsError:
    return ResultsError(f"{source} is not a bundle: {why}; give a file that `tuneoff bundle` made")


def wrong_files(files: Iterable[BundledFile]) -> Iterator[str]:
    """Yield what no bundle may hold, in words."""
    seen: set[str] = set()
    for file in files:
        if not is_safe(file.path) or file.path == MANIFEST:
            yield f"the path {file.path[:80]!r} may not be in a bundle"
        elif file.path.count("/") >= MOST_PARTS:
            yield f"the path {file.path[:80]!r} has more than {MOST_PARTS} parts"
        elif file.path in seen:
            yield f"the path {file.path[:80]!r} is listed twice"
        seen.add(file.path)
