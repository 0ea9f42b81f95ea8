"""Write and read `run.json`, the record of an execution: a cache of what is derived from its raw files, with their key.

Of a run's executions one stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from tuneoff.base.files import replacing
from tuneoff.base.layout import END, RECORD, RUNS
from tuneoff.errors import ExperimentError, ResultsError
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.record.run_record import FAILED, FORMAT_VERSION, RunRecord

REPEAT = "repeat"  # in a record's environment: which repetition of its block it belongs to, and why the block is repeated
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RunRecord)


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


def write_run(folder: Path, record: RunRecord, key: str) -> Path:
    """Write the record into the folder of its execution and return the path; `key`: see `key_of`.

    Raises:
        ResultsError: the folder is full or cannot be written.
    """
    path = folder / RECORD
    write_file(path, encode(record, key))
    return path


def encode(record: RunRecord, key: str) -> Iterator[bytes]:
    """Yield the text of `run.json` in pieces: format version and key first, one line per field, trial or metric."""
    names = [field.name for field in fields(record)]
    yield _opening(key)
    for name in names:
        if name == "format_version":
            continue
        value = getattr(record, name)
        yield b",\n " + _encoder.encode(name) + b": "
        if isinstance(value, tuple) and value:
            yield from _lines(b"[", (_encoder.encode(item) for item in value), b"]")
        elif name == "metrics" and value:
            items = (_encoder.encode(key) + b": " + _encoder.encode(item) for key, item in value.items())
            yield from _lines(b"{", items, b"}")
        else:
            yield _encoder.encode(value)
    yield b"\n}\n"


def _opening(key: str) -> bytes:
    return b'{\n "format_version": %d,\n "key": %b' % (FORMAT_VERSION, _encoder.encode(key))


def _lines(opening: bytes, items: Iterable[bytes], closing: bytes) -> Iterator[bytes]:
    for item in items:
        yield opening + b"\n  " + item
        opening = b","
    yield b"\n " + closing


def has_key(content: bytes, key: str) -> bool:
    """Tell whether the text of a `run.json` is of this format version and of the files that have this key."""
    return content.startswith(_opening(key))


def cached_run(content: bytes, key: str) -> RunRecord | None:
    """Return the record that the text of a `run.json` holds; None where it is damaged, or of other files."""
    try:
        if not has_key(content, key):
            return None
        record = _decoder.decode(content)
        run_spec_from_json(record.specification)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ExperimentError):
        return None
    return record


def ended_executions(results: Path) -> Iterator[Path]:
    """Yield the folder of every execution that has ended (`runs/<run id>/<execution id>/`), in a fixed order.

    Raises:
        ResultsError: the folder does not exist or cannot be read.
    """
    if not results.is_dir():
        raise ResultsError(f"the results folder {results} does not exist")
    try:
        yield from (path.parent for path in sorted((results / RUNS).glob(f"*/*/{END}")))
    except OSError as error:
        raise ResultsError(f"the results folder {results} cannot be read: {error.strerror}") from error


def run_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of `run.json`."""
    (_, *_), components = msgspec.json.schema_components([RunRecord], ref_template="#/$defs/{name}")
    components["RunRecord"]["properties"]["key"] = {"type": "string", "description": "tells what the record follows from"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tuneoff run record",
        "description": f"`run.json`, format version {FORMAT_VERSION}. Times are nanoseconds since the start of the deploy step.",
        "$ref": "#/$defs/RunRecord",
        "$defs": components,
    }


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


def selected_executions(records: Iterable[RunRecord]) -> dict[str, RunRecord]:
    """Return the selected execution of each run: the latest that is done, else the latest; in the order of first appearance.

    Where its block was repeated, the repetition that came to an end stands, whatever it came to: it was decided blind.
    """
    best: dict[str, RunRecord] = {}
    for record in records:
        previous = best.get(record.run_id)
        if previous is None or _rank(record) > _rank(previous):
            best[record.run_id] = record
    return best


def _rank(record: RunRecord) -> tuple[bool, int, str, str]:
    number = repeat_number(record)
    is_eligible = record.status == "done" or (number > 0 and is_final(record))
    return is_eligible, number if is_eligible else 0, record.started_at or "", record.execution_id
