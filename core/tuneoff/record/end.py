"""How an execution ended: `end.json`, written once, when all its raw files are there, with their seal.

It holds what no other file says: the supervisor's ruling, versions, environment. From it and what it seals the record is derived.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import tuneoff
from tuneoff.base.files import PLAIN_NAME, read_json, read_regular, sha256_of
from tuneoff.base.layout import ACCOUNTING, END, EVENTS, SAMPLES, SPEC, TEST_RESULT, VERSIONS
from tuneoff.errors import ExperimentError, ResultsError
from tuneoff.experiment.metric_catalogue import DEVICE_PEAK, METRICS
from tuneoff.experiment.spec import RunSpec, run_spec_from_json
from tuneoff.record.endings import Ruling
from tuneoff.record.run_record import FORMAT_VERSION, FlagRecord
from tuneoff.record.store import write_bytes

BESIDE = (SPEC, ACCOUNTING, SAMPLES, TEST_RESULT, VERSIONS)  # sealed beside the event files, where they are there


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFile:
    """A raw file: its path in the folder of the execution, its size and SHA-256 at the end of the run."""

    name: str
    size_bytes: int
    sha256: str


class ExecutionEnd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was stated of an execution when it ended. `ruling` None: its status follows from its events."""

    format_version: int = FORMAT_VERSION
    ruling: Ruling | None = None
    emulated: bool | msgspec.UnsetType = msgspec.UNSET  # written by earlier tuneoffs: today it is a flag
    versions: dict[str, Any] = {}  # framework, classes of sampler and pruner
    environment: dict[str, Any] = {}  # Python, machine, packages, git, data, limits, `after`
    sealed: tuple[SealedFile, ...] = ()

    def platform_flags(self, platform: str, flags: Collection[str]) -> tuple[FlagRecord, ...]:
        """Return the flag of an emulated platform where the names of a run's own `flags` lack it.

        An earlier tuneoff stated it here; and a stranger's events without it are not believed where the platform's name is there.
        """
        if "emulated_platform" in flags or not (self.emulated is True or platform == "emulated"):
            return ()
        text = "the tuneoff that ran it stated so" if self.emulated is True else "its platform is one, though no event says so"
        return (FlagRecord(name="emulated_platform", text=text),)


class BrokenSeal(NamedTuple):
    """A file that is not as it was sealed, and how."""

    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


class _Version(msgspec.Struct):
    format_version: Any = None


_decoder = msgspec.json.Decoder(ExecutionEnd)


def write_end(folder: Path, end: ExecutionEnd) -> bytes:
    """Write `end.json` into an execution's folder, and return its text: from now on the execution has ended.

    Raises:
        ResultsError: the folder is full or cannot be written.
    """
    content = msgspec.json.format(msgspec.json.encode(end), indent=1) + b"\n"
    write_bytes(folder / END, content)
    return content


def read_end(folder: Path, content: bytes | None = None) -> ExecutionEnd:
    """Read the `end.json` of an execution's folder; `content`: its text, where the caller has it.

    Raises:
        ResultsError: it is missing, damaged, or of a format version that this tuneoff does not read.
    """
    path = folder / END
    content = end_bytes(folder) if content is None else content
    try:
        version = msgspec.json.decode(content, type=_Version).format_version
        if version != FORMAT_VERSION:
            raise ResultsError(
                f"{path} has format version {version!r}, but this tuneoff reads version {FORMAT_VERSION}; "
                "use the tuneoff that wrote it, or a new --output folder"
            )
        return _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{path} is damaged: {error}; restore it, or remove the execution's folder") from error


def end_bytes(folder: Path) -> bytes:
    """Return the text of an execution's `end.json`.

    Raises:
        ResultsError: it cannot be read, or the folder has a name that no record can have.
    """
    path = folder / END
    if re.match(PLAIN_NAME, folder.name) is None:
        raise ResultsError(f"{path} cannot be read: its folder must have the execution's name, but was renamed; rename it back")
    try:
        return read_regular(path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error


def read_spec(folder: Path) -> RunSpec:
    """Return the specification of an execution by its `spec.json`.

    Raises:
        ResultsError: it cannot be read, or is not a specification of a run.
    """
    path = folder / SPEC
    try:
        return run_spec_from_json(read_json(path)["run"])
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, ExperimentError) as error:
        raise ResultsError(
            f"{path} is not a specification of a run: {error}; restore it, or remove the execution's folder"
        ) from error


def key_of(end: bytes) -> str:
    """Return the key of all that follows from an execution: the digest of its `end.json`, this tuneoff's version and metrics."""
    since = b"flags" if b'\n "emulated": true' in end else b""  # a record that was stored before that was a flag lacks it
    names = (name for name in METRICS if name != DEVICE_PEAK)  # no record that was stored before that has slots with devices
    return hashlib.sha256(end + " ".join((tuneoff.__version__, *names)).encode() + since).hexdigest()[:32]


def seal(folder: Path) -> tuple[SealedFile, ...]:
    """Return the digests of an execution's raw files, by their path in its folder: all in `events/`, and those of `BESIDE`.

    Raises:
        ResultsError: a file cannot be read.
    """
    try:
        paths = sorted(path for path in (folder / EVENTS).iterdir() if path.is_file())
        paths += [path for path in (folder / name for name in BESIDE) if path.is_file()]
        files = []
        for path in paths:
            sha256, name = sha256_of(path), path.relative_to(folder).as_posix()
            files.append(SealedFile(name=name, size_bytes=path.stat().st_size, sha256=sha256))
        return tuple(files)
    except OSError as error:
        raise ResultsError(f"{error.filename or folder} cannot be sealed: {error.strerror}") from error


def broken_seals(folder: Path, sealed: Sequence[SealedFile]) -> Iterator[BrokenSeal]:
    """Yield the files that are missing, changed, or not sealed.

    Raises:
        ResultsError: a file cannot be read.
    """
    today_files = {file.name: file for file in seal(folder)}
    for file in sealed:
        today = today_files.pop(file.name, None)
        if today is None:
            yield BrokenSeal(file.name, "is missing")
        elif (today.size_bytes, today.sha256) != (file.size_bytes, file.sha256):
            was = f"sealed with {file.size_bytes} bytes and {file.sha256[:12]}"
            yield BrokenSeal(file.name, f"changed: {was}, now {today.size_bytes} bytes and {today.sha256[:12]}")
    for name in sorted(today_files):
        yield BrokenSeal(name, "was added after the seal")
