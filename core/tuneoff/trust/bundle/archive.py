"""The archive itself: written the same bytes for the same files, unpacked only as its manifest says."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, BinaryIO, Self

from tuneoff.base.files import open_regular, replacing, sha256_of, without_links
from tuneoff.errors import ResultsError
from tuneoff.trust.bundle.manifest import LONGEST_MANIFEST, MANIFEST, BundledFile, BundleManifest, decode, not_a_bundle

Content = bytes | Path
CHUNK = 1 << 20
COMPRESSION = 6
PER_MEMBER = 4096  # bytes of headers and padding around a member, at most
LONGEST_HEADER = 8192  # bytes of an extended header: a path has 1024 characters at most, and tarfile is quadratic in them
_EXTENDED = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_UNREADABLE = (  # the last ones: what tarfile lets through where a header was made up
    *(tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile),
    *(ValueError, OverflowError, RecursionError),
)


def describe(path: str, content: Content) -> BundledFile:
    """Return the entry of a file for the manifest.

    Raises:
        ResultsError: the file cannot be read.
    """
    if isinstance(content, bytes):
        return BundledFile(path=path, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
    try:
        with open_regular(content) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return BundledFile(path=path, size_bytes=file.tell(), sha256=digest)
    except OSError as error:
        raise ResultsError(f"{content} cannot be read: {error.strerror}") from error


def write_archive(target: Path, manifest: BundleManifest, contents: Mapping[str, Content]) -> str:
    """Write the archive in one step and return its SHA-256; `contents` are the manifest's files by path.

    Names are sorted, and nothing of this machine is in the headers: no time, no owner.

    Raises:
        ResultsError: the disk is full, the target cannot be written, or a file changed since it was described.
    """
    try:
        with (
            replacing(without_links(target.parent) / target.name) as raw,
            gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as tar,
        ):
            _add(tar, f"{manifest.name}/{MANIFEST}", describe(MANIFEST, text := manifest.encode()), text)
            for file in sorted(manifest.files, key=lambda file: file.path):
                _add(tar, f"{manifest.name}/{file.path}", file, contents[file.path])
        return sha256_of(target, follow=True)
    except OSError as error:
        raise ResultsError(f"{target} cannot be written: {error.strerror}; free space or choose another --output") from error


def _add(tar: tarfile.TarFile, name: str, file: BundledFile, content: Content) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = file.size_bytes, 0o644, 0
    source: BinaryIO = io.BytesIO(content) if isinstance(content, bytes) else open_regular(content)
    with source:
        hashed = _Hashed(source)
        try:
            tar.addfile(entry, hashed)
        except OSError as error:
            if error.errno is None:  # tarfile's own: the file became shorter
                raise ResultsError(_changed(content)) from error
            raise
        if hashed.digest.hexdigest() != file.sha256 or source.read(1):
            raise ResultsError(_changed(content))


def _changed(content: Content) -> str:
    return f"{content if isinstance(content, Path) else 'a file'} changed while it was packed; let its command end first"


class _Hashed(io.RawIOBase):
    """A file that is hashed while it is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self.source, self.digest = source, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        part = self.source.read(size)
        self.digest.update(part)
        return part


def read_manifest(path: Path) -> BundleManifest:
    """Return the manifest of a bundle; nothing else of it is read.

    Raises:
        ResultsError: it is not a bundle, or its manifest is truncated, damaged or of another version.
    """
    with _opened(path) as (tar, _):
        return _manifest(tar, path)


def unpack(path: Path, folder: Path, limit_bytes: int) -> BundleManifest:
    """Unpack a bundle into an empty folder and return its manifest; everything must be as the manifest says.

    A member that is not a plain file, leaves the folder, is not listed, comes twice, or has another size or SHA-256 is refused
    before the next one is read, and no more is read than the manifest announces.

    Raises:
        ResultsError: it is not a bundle, truncated, tampered with, of another version, above the limit, or there is no space.
    """
    with _opened(path) as (tar, source):
        manifest = _manifest(tar, path)
        needed = f"{manifest.disk_bytes / 1e6:.0f} MB"
        if manifest.disk_bytes > limit_bytes:
            limit = f"{limit_bytes / 1e6:.0f} MB"
            raise ResultsError(f"{path} unpacks to {needed}, but the limit is {limit}; raise it by --limit-mb")
        free = shutil.disk_usage(folder).free
        if manifest.disk_bytes > free:
            raise ResultsError(
                f"{path} needs {needed} in {folder}, but {free / 1e6:.0f} MB are free; set TMPDIR to another folder"
            )
        source.remaining = manifest.size_bytes + PER_MEMBER * (len(manifest.files) + 4) + tarfile.RECORDSIZE
        try:
            listed = {f"{manifest.name}/{file.path}": file for file in manifest.files}
            while (member := tar.next()) is not None:
                if not member.isreg() or member.issparse():
                    raise ResultsError(
                        f"{path} is refused: {member.name[:80]!r} is not a plain file; get it from a source you trust"
                    )
                file = listed.pop(member.name, None)
                if file is None:
                    raise ResultsError(
                        f"{path} was changed: {member.name[:80]!r} is not in its {MANIFEST}, or twice; get it again"
                    )
                if member.size != file.size_bytes:
                    raise ResultsError(
                        f"{path} was changed: {file.path} has {member.size} bytes, not {file.size_bytes}; get it again"
                    )
                target = folder / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                member_file = tar.extractfile(member)
                assert member_file is not None  # a plain file
                with member_file, target.open("xb") as out:
                    hashed = _Hashed(member_file)
                    shutil.copyfileobj(hashed, out, CHUNK)
                digest = hashed.digest.hexdigest()
                if digest != file.sha256:
                    text = f"{file.path} has SHA-256 {digest[:12]}, its {MANIFEST} says {file.sha256[:12]}"
                    raise ResultsError(f"{path} was changed: {text}; get it again")
            if listed:
                first = next(iter(listed.values())).path
                raise ResultsError(f"{path} is truncated: {len(listed)} of its files are missing, first {first}; get it again")
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise ResultsError(f"{folder} has no space for {path}; free space, or set TMPDIR to another folder") from error
            raise
        while source.read(CHUNK):  # to its end, where gzip keeps the checksum
            pass
    return manifest


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[tarfile.TarFile, _Bounded]]:
    """Open an archive for reading its members in order, and what is read from.

    Raises:
        ResultsError: it cannot be read, or what is read in the block is not an archive.
    """
    try:
        with open_regular(path, follow=True) as raw, gzip.GzipFile(fileobj=raw) as packed:
            source = _Bounded(packed, path)
            with tarfile.open(fileobj=source, mode="r|", encoding="utf-8", tarinfo=_TarHeader) as tar:
                yield tar, source
    except _UNREADABLE as error:
        if isinstance(error, gzip.BadGzipFile) and "Not a gzipped file" in str(error):
            raise not_a_bundle(str(path), "it is not a gzip file") from error
        is_cut = isinstance(error, EOFError) or "unexpected end" in str(error) or "empty file" in str(error)
        raise ResultsError(f"{path} is {'truncated' if is_cut else 'damaged'} ({error}); get it again") from error
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror or error}; give a file that `tuneoff bundle` made") from error


class _TarHeader(tarfile.TarInfo):
    """A member's header, of which an extended one is short."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _EXTENDED and not 0 <= entry.size <= LONGEST_HEADER:
            raise tarfile.ReadError(f"an extended header has {entry.size} bytes")
        return entry


class _Bounded(io.RawIOBase):
    """Reads the unpacked stream, and refuses to read more than what is announced: a few bytes may unpack to a full disk."""

    def __init__(self, packed: gzip.GzipFile, path: Path) -> None:
        self.packed, self.path, self.remaining = packed, path, LONGEST_MANIFEST + PER_MEMBER + tarfile.RECORDSIZE

    def read(self, size: int = -1) -> bytes:
        part = self.packed.read(min(size, CHUNK) if size >= 0 else CHUNK)
        self.remaining -= len(part)
        if self.remaining < 0:
            raise ResultsError(f"{self.path} is refused: it unpacks to more than its {MANIFEST} announces")
        return part


def _manifest(tar: tarfile.TarFile, path: Path) -> BundleManifest:
    """Return the manifest, which is the first member."""
    member = tar.next()
    is_plain = member is not None and member.isreg() and not member.issparse()
    if member is None or not is_plain or not member.name.endswith(f"/{MANIFEST}") or member.name.count("/") != 1:
        raise not_a_bundle(str(path), f"it does not begin with its {MANIFEST}")
    if member.size > LONGEST_MANIFEST:
        raise not_a_bundle(str(path), f"its {MANIFEST} has {member.size} bytes")
    file = tar.extractfile(member)
    manifest = decode(file.read() if file is not None else b"", str(path))
    if member.name != f"{manifest.name}/{MANIFEST}":
        raise not_a_bundle(str(path), f"its {MANIFEST} is that of {manifest.name!r}")
    return manifest
