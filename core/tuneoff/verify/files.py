"""Do the other files of an execution say what its record says: specification, test result, checkpoint?"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tuneoff.lifecycle.context import SPEC
from tuneoff.records.model import RunRecord
from tuneoff.records.seal import TEST
from tuneoff.trial.checkpoint import checkpoint_path
from tuneoff.verify.compare import differences, show


class FileFault(NamedTuple):
    """What a file says otherwise than the record."""

    file: str
    text: str


def file_faults(folder: Path, record: RunRecord) -> Iterator[FileFault]:
    """Yield what the files beside the events contradict; a file that was never made contradicts nothing."""
    yield from _specification(folder, record)
    yield from _test(folder, record)
    yield from _checkpoint(folder, record)


def _specification(folder: Path, record: RunRecord) -> Iterator[FileFault]:
    found = yield from _json(folder, SPEC)
    if isinstance(found, dict):
        own = {"execution_id": record.execution_id, "run_id": record.run_id, "run": record.specification}
        for difference in differences(found, own):
            text = f"{difference.path} is {show(difference.stored)}, run.json has {show(difference.recomputed)}"
            yield FileFault(SPEC, text)


def _test(folder: Path, record: RunRecord) -> Iterator[FileFault]:
    found = yield from _json(folder, TEST)
    if record.test is None or not isinstance(found, dict):
        return
    own = {
        "trial": record.test.trial,
        "scores": dict(record.test.scores),
        "checkpoint_sha256": record.test.checkpoint_sha256,
        "device": record.test.device,
    }
    for difference in differences({name: found.get(name) for name in own}, own):
        text = f"{difference.path} is {show(difference.stored)}, the events say {show(difference.recomputed)}"
        yield FileFault(TEST, text)


def _checkpoint(folder: Path, record: RunRecord) -> Iterator[FileFault]:
    """Hold the checkpoint that was tested to the digest that the test took of it."""
    if record.test is None or record.test.checkpoint_sha256 is None:
        return
    path = checkpoint_path(folder, record.test.trial)
    name = path.relative_to(folder).as_posix()
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        yield FileFault(name, "is missing: the test scored it")
    except OSError as error:
        yield FileFault(name, f"cannot be read: {error.strerror}")
    else:
        if found != record.test.checkpoint_sha256:
            yield FileFault(name, f"its SHA-256 is {found[:12]}, but the test scored {record.test.checkpoint_sha256[:12]}")


def _json(folder: Path, name: str) -> Generator[FileFault, None, Any]:
    """Return a JSON file's value, None where there is no such file or it cannot be read (which is yielded)."""
    try:
        return json.loads((folder / name).read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        yield FileFault(name, f"cannot be read: {error.strerror}")
    except ValueError as error:
        yield FileFault(name, f"is no JSON: {error}")
    return None
