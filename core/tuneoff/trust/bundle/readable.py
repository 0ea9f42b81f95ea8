"""Whether the parts of a record that run.json alone states can be read: nothing recomputes them, so anything may be in them."""

from __future__ import annotations

from typing import Any

from tuneoff.errors import TuneoffError
from tuneoff.record.run_record import RunRecord

GREATEST = 1e18  # of a number of bytes or ns: more is none, and a larger integer breaks arithmetic with decimal ones
_OBJECTS = ("versions", "cpu", "data", "workload", "machine_before")


def is_readable(record: RunRecord) -> bool:
    """Tell whether environment and specification have the types that bundles rely on."""
    environment = record.environment
    objects = {name: environment.get(name) for name in _OBJECTS}
    if not all(part is None or isinstance(part, dict) for part in objects.values()):
        return False
    data, cpu, workload, before = (objects[name] or {} for name in ("data", "cpu", "workload", "machine_before"))
    digests, sets = data.get("sha256"), cpu.get("instruction_sets")
    return (
        (digests is None or (isinstance(digests, dict) and _are_texts(digests.values())))
        and (sets is None or (isinstance(sets, list) and _are_texts(sets)))
        and all(map(_is_number, (environment.get("memory_total_bytes"), before.get("sentinel_ns"))))
        and isinstance(workload.get("sha256"), str | None)
        and all((objects["versions"] or {}).keys())
        and _has_specification(record)
    )


def _has_specification(record: RunRecord) -> bool:
    try:
        record.run_spec()
    except (KeyError, TypeError, ValueError, AttributeError, TuneoffError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < GREATEST)


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)
