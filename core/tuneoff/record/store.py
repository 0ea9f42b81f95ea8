"""Write and read `run.json`: atomically, checked, one line per problem.

It seals the raw files of the execution by their SHA-256, so that a later change shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tuneoff.base.files import open_regular, read_regular, replacing
from tuneoff.errors import ExperimentError, ResultsError
from tuneoff.experiment.accounting.declared import FILE_NAME as ACCOUNTING
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.layout import TEST_RESULT, SealedFile
from tuneoff.record.run_record import FAILED, FORMAT_VERSION, RunRecord
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES

FILE_NAME = "run.json"
RUNS = "runs"
REPEAT = "repeat"  # in a record's environment: which repetition of its block it belongs to, and why the block is repeated

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RunRecord)
BESIDE = (ACCOUNTING, SAMPLES, TEST_RESULT)  # sealed beside the event files, where they are there


class _RecordVersion(msgspec.Struct):
    format_version: int


def write_file(path: Path, content: Iterable[bytes]) -> None:
    """Replace a file in one step: a reader or a crash sees the old or the new content, never a part.

    Raises:
        ResultsError: the folder is full or cannot be written.
    """
    try:
        with replacing(path) as file:
            file.writelines(content)
    except OSError as error:
        raise ResultsError(f"{path} cannot be written: {error.strerror}; free space or choose another --output") from error


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a small file in one step, as `write_file` does."""
    write_file(path, (content,))


def write_run(run_dir: Path, record: RunRecord) -> Path:
    """Write a run's record into its folder and return the path.

    Raises:
        ResultsError: the folder is full or cannot be written.
    """
    path = run_dir / FILE_NAME
    write_file(path, encode(record))
    return path


def encode(record: RunRecord) -> Iterator[bytes]:
    """Yield the text of `run.json` in pieces: the format version first, one line per field, trial or metric."""
    names = [field.name for field in fields(record)]
    opening = b"{\n "
    for name in sorted(names, key=lambda name: name != "format_version"):
        value = getattr(record, name)
        yield opening + _encoder.encode(name) + b": "
        opening = b",\n "
        if isinstance(value, tuple) and value:
            yield from _lines(b"[", (_encoder.encode(item) for item in value), b"]")
        elif name == "metrics" and value:
            items = (_encoder.encode(key) + b": " + _encoder.encode(item) for key, item in value.items())
            yield from _lines(b"{", items, b"}")
        else:
            yield _encoder.encode(value)
    yield b"\n}\n"


def _lines(opening: bytes, items: Iterable[bytes], closing: bytes) -> Iterator[bytes]:
    for item in items:
        yield opening + b"\n  " + item
        opening = b","
    yield b"\n " + closing


def read_run(path: Path) -> RunRecord:
    """Read a `run.json`, or the one in a run's folder.

    Raises:
        ResultsError: it is missing, corrupt, or of a format version that this tuneoff does not read.
    """
    path = path / FILE_NAME if path.is_dir() else path
    try:
        content = read_regular(path)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    try:
        version = msgspec.json.decode(content, type=_RecordVersion).format_version
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{path} is no run record: {error}; derive it again from its events or remove it") from error
    if version != FORMAT_VERSION:
        raise ResultsError(
            f"{path} has format version {version}, but this tuneoff reads version {FORMAT_VERSION}; "
            "use the tuneoff that wrote it, or a new --output folder"
        )
    try:
        record = _decoder.decode(content)
        run_spec_from_json(record.specification)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ExperimentError) as error:
        raise ResultsError(f"{path} is corrupt: {error}; derive it again from its events or remove it") from error
    return record


def run_paths(results: Path) -> Iterator[Path]:
    """Yield the `run.json` of every execution in a results folder (`runs/<run id>/<execution id>/`), in a fixed order.

    Raises:
        ResultsError: the folder does not exist or cannot be read.
    """
    if not results.is_dir():
        raise ResultsError(f"the results folder {results} does not exist")
    try:
        yield from sorted((results / RUNS).glob(f"*/*/{FILE_NAME}"))
    except OSError as error:
        raise ResultsError(f"the results folder {results} cannot be read: {error.strerror}") from error


def read_runs(results: Path) -> Iterator[RunRecord]:
    """Yield the records of all executions in a results folder, one at a time.

    Raises:
        ResultsError: see read_run and run_paths.
    """
    for path in run_paths(results):
        record = read_run(path)
        place = f"{record.run_id}/{record.execution_id}"
        if path.parts[-3:-1] != (record.run_id, record.execution_id):
            raise ResultsError(f"{path} is the record of {place}, which is another place; move its folder there, or remove it")
        yield record


def is_final(record: RunRecord) -> bool:
    """Tell whether `--resume` leaves a run alone: done, or failed for reasons that a repetition would meet again."""
    if record.status == "done":
        return True
    return record.status in FAILED and record.charged not in ("infrastructure", "user", None)


def repeat_number(record: RunRecord) -> int:
    """Return which repetition of its block an execution is; 0: the first execution, or a run that was resumed."""
    repeat = record.environment.get(REPEAT)
    number = repeat.get("number") if isinstance(repeat, Mapping) else None
    return number if isinstance(number, int) else 0


def standing(records: Iterable[RunRecord]) -> dict[str, RunRecord]:
    """Return the execution that stands for each run: the latest that is done, else the latest; in the order of first appearance.

    Where its block was repeated, the repetition that came to an end stands, whatever it came to: it was decided blind.
    """
    best: dict[str, RunRecord] = {}
    for record in records:
        known = best.get(record.run_id)
        if known is None or _rank(record) > _rank(known):
            best[record.run_id] = record
    return best


def run_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of `run.json`."""
    (_, *_), components = msgspec.json.schema_components([RunRecord], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tuneoff run record",
        "description": f"`run.json`, format version {FORMAT_VERSION}. Times are nanoseconds since the start of the deploy step.",
        "$ref": "#/$defs/RunRecord",
        "$defs": components,
    }


def _rank(record: RunRecord) -> tuple[bool, int, str, str]:
    number = repeat_number(record)
    stands = record.status == "done" or (number > 0 and is_final(record))
    return stands, number if stands else 0, record.started_at or "", record.execution_id


class BrokenSeal(NamedTuple):
    """A file that is not as it was sealed, and how."""

    name: str
    problem: str

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


def seal(run_dir: Path) -> tuple[SealedFile, ...]:
    """Return the digests of an execution's raw files, by their path in its folder: all in `events/`, and those of
    `BESIDE`.

    Raises:
        ResultsError: a file cannot be read.
    """
    try:
        paths = sorted(path for path in (run_dir / EVENTS).iterdir() if path.is_file())
        paths += [path for path in (run_dir / name for name in BESIDE) if path.is_file()]
        return tuple(_sealed(path, path.relative_to(run_dir).as_posix()) for path in paths)
    except OSError as error:
        raise ResultsError(f"{error.filename or run_dir} cannot be sealed: {error.strerror}") from error


def broken_seals(run_dir: Path, sealed: Sequence[SealedFile]) -> list[BrokenSeal]:
    """Return the files that are missing, changed, or not sealed; an empty list if all is as it was sealed.

    Raises:
        ResultsError: a file cannot be read.
    """
    return list(compare_seals(sealed, seal(run_dir)))


def compare_seals(sealed: Sequence[SealedFile], now: Sequence[SealedFile]) -> Iterator[BrokenSeal]:
    """Yield how the files of today differ from those that were sealed."""
    found = {file.name: file for file in now}
    for file in sealed:
        today = found.pop(file.name, None)
        if today is None:
            yield BrokenSeal(file.name, "is missing")
        elif (today.size_bytes, today.sha256) != (file.size_bytes, file.sha256):
            was = f"sealed with {file.size_bytes} bytes and {file.sha256[:12]}"
            yield BrokenSeal(file.name, f"changed: {was}, now {today.size_bytes} bytes and {today.sha256[:12]}")
    for name in sorted(found):
        yield BrokenSeal(name, "was added after the seal")


def _sealed(path: Path, name: str) -> SealedFile:
    with open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return SealedFile(name=name, size_bytes=path.stat().st_size, sha256=digest)
