"""What an export in Parquet was made from, and whether the records are still the same."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

import tuneoff
from tuneoff.base.files import open_regular, read_regular
from tuneoff.base.identity import digest
from tuneoff.experiment.accounting.declared import FILE_NAME as ACCOUNTING
from tuneoff.record.results_folder import PLAN
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES
from tuneoff.record.store import run_paths, write_bytes

FILE_NAME = "made_from.json"
FORMAT_VERSION = 1
SURE_NS = 2_000_000_000  # a file younger than this when the manifest was made may change again within one tick of its clock


class Source(msgspec.Struct, frozen=True):
    """A file that the tables were made from."""

    size: int
    mtime_ns: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The files that tables were made from, by their path in the results folder."""

    format_version: int = FORMAT_VERSION
    tuneoff: str = ""  # the version that made it: what a trial is charged is computed, and another may compute it otherwise
    made_at_ns: int
    sources: dict[str, Source]

    @property
    def made_from(self) -> str:
        """Digest of the content of all sources; every table has it too, so that those of two exports are not mixed."""
        return digest({name: source.sha256 for name, source in self.sources.items()}, 32)


def make_manifest(results: Path) -> Manifest:
    """Return the manifest of a results folder as it is now: make it before reading, so that a later change shows.

    Raises:
        ResultsError: the folder cannot be read.
    """
    made_at = time.time_ns()
    sources = {}
    for name, found in _sources(results):
        sources[name] = Source(size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=_sha256(results / name))
    return Manifest(tuneoff=tuneoff.__version__, made_at_ns=made_at, sources=sources)


def write_manifest(folder: Path, manifest: Manifest) -> Path:
    """Write it beside the tables and return its path."""
    path = folder / FILE_NAME
    write_bytes(path, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    return path


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of an export; None: there is none that can be used."""
    try:
        manifest = msgspec.json.decode(read_regular(folder / FILE_NAME), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return manifest if manifest.format_version == FORMAT_VERSION else None


def changes(manifest: Manifest, results: Path) -> str | None:
    """Return in words what has changed in the results folder, or in tuneoff, since; None: nothing has.

    Where size and time of a file are those of then, it is taken as the same; where the size alone is, as in a copy of the
    folder, or where the file was young then, its content decides.
    """
    if manifest.tuneoff != tuneoff.__version__:
        return f"tuneoff {manifest.tuneoff or 'of an unknown version'} made it, this is {tuneoff.__version__}"
    found = dict(_sources(results))
    new, gone = found.keys() - manifest.sources.keys(), manifest.sources.keys() - found.keys()
    both = [name for name in manifest.sources if name in found]
    changed = [name for name in both if not _is_same(results, name, found[name], manifest)]
    texts = [f"{len(names)} {word}" for names, word in ((new, "new"), (gone, "gone"), (changed, "changed")) if names]
    return f"files it was made from: {', '.join(texts)}" if texts else None


def _is_same(results: Path, name: str, now: os.stat_result, manifest: Manifest) -> bool:
    source = manifest.sources[name]
    if now.st_size != source.size:
        return False
    if now.st_mtime_ns == source.mtime_ns and source.mtime_ns < manifest.made_at_ns - SURE_NS:
        return True
    return _sha256(results / name) == source.sha256


def _sources(results: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the plan, and of each execution its record and what its trials are charged by, with size and time."""
    root = str(results)
    names = [PLAN]
    for path in run_paths(results):
        folder = os.path.relpath(path.parent, root)
        names += [os.path.join(folder, name) for name in (path.name, SAMPLES, ACCOUNTING)]
    for name in names:
        try:
            found = os.lstat(os.path.join(root, name))
        except OSError:
            continue
        if stat.S_ISREG(found.st_mode):
            yield name, found


def _sha256(path: Path) -> str:
    """Return the digest of a file; "" where it cannot be read: whoever reads it says so."""
    try:
        with open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
