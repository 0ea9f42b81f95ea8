"""Store a record as a run leaves it: what was stated and sealed, and the record that is said to follow from it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from tuneoff.base.layout import END
from tuneoff.measure import derived
from tuneoff.record import end, store
from tuneoff.record.endings import Ruling
from tuneoff.record.run_record import RunRecord


def write_run(folder: Path, record: RunRecord, ruling: Ruling | None = None) -> Path:
    """Write `end.json` and `run.json`, and return the latter's path; seals that are there stay."""
    if (folder / END).exists():
        known = end.read_end(folder)
    else:
        known = end.ExecutionEnd(sealed=end.seal(folder) if (folder / "events").exists() else ())
    if record.status != "done" and ruling is None:
        ruling = Ruling(status=record.status, reason=record.reason, charged=record.charged)
    stated = replace(
        known,
        ruling=ruling or known.ruling,
        versions=dict(record.versions),
        environment={**record.environment},
    )
    return store.write_run(folder, record, end.key_of(end.write_end(folder, stated)))


def derive_again(folder: Path) -> None:
    """Derive the record of a folder anew and store it, as somebody would who covers a change well."""
    stated = replace(end.read_end(folder), sealed=end.seal(folder))
    record = derived.derive_folder(folder, end.read_spec(folder), stated).record
    store.write_run(folder, record, end.key_of(end.write_end(folder, stated)))
