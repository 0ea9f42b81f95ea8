"""Where the runs of two folders ran, and what differs: machine, packages, versions of frameworks, calibration."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tuneoff.judge.diff.comparison import Sides
from tuneoff.record.run_record import RunRecord
from tuneoff.run.machine import from_json

_MACHINE = (  # times are compared where these are equal
    "cpu.vendor",
    "cpu.family",
    "cpu.model",
    "cpu.name",
    "cpu.stepping",
    "cpu.logical_count",
    "machine",
    "accelerators",
)
_ALSO = (
    "host",
    "kernel",
    "libc",
    "python",
    "container",
    "virtual_machine",
    "niceness",
    "memory_total_bytes",
    "power.meter",
    "power.kind",
    "limits.cpus",
    "workload.version",
    "workload.sha256",
)
_PROCESSORS = "cpus_available"
MOST = 3  # values of one side that are named
NOTHING = "none"


def is_same_machine(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> bool:
    """Tell whether both folders ran on the same kind of processor, and as many of them; without a record, no."""
    sides = [{_machine(record.environment) for record in records if record.environment} for records in (old, new)]
    return bool(sides[0]) and sides[0] == sides[1]


def differing(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> dict[str, Sides]:
    """Return what differs between the environments of two folders, by name."""
    ours, theirs = _collected(old), _collected(new)
    found = {}
    for name in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(name, {}), theirs.get(name, {})
        if set(one) != set(other):
            found[name] = (_text(one), _text(other))
    return found


def frozen_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Sides]:
    """Return what differs between two frozen analyses, by name; digests and lists of what was planned are left out."""
    names = ("questions", "primary_metric", "margin_percent", "quality_margin", "confidence", "family_size", "looks", "anchors")
    return {name: (_plain(old.get(name)), _plain(new.get(name))) for name in names if old.get(name) != new.get(name)}


def sentinel_ratio(old: Sequence[RunRecord], new: Sequence[RunRecord]) -> float | None:
    """Return how many times as long the guard's calculation took before the runs of the new folder, by medians."""
    sides = [list(_sentinels(records)) for records in (old, new)]
    return statistics.median(sides[1]) / statistics.median(sides[0]) if all(sides) else None


def _sentinels(records: Sequence[RunRecord]) -> Iterator[int]:
    for record in records:
        state = from_json(record.environment.get("machine_before"))
        if state is not None:
            yield state.sentinel_ns


def _machine(environment: Mapping[str, Any]) -> tuple[str, ...]:
    return (*(_plain(_at(environment, name)) for name in _MACHINE), _processors(environment))


def _collected(records: Sequence[RunRecord]) -> dict[str, dict[str, None]]:
    """Return every value of every name that some record has."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in _of_record(record):
            found.setdefault(name, {})[value] = None
    return found


def _of_record(record: RunRecord) -> Iterator[tuple[str, str]]:
    environment = record.environment
    if environment:
        for name in (*_MACHINE, *_ALSO):
            yield name.replace("_", " ").replace(".", " "), _plain(_at(environment, name))
        yield "processors", _processors(environment)
        versions = environment.get("versions")
        for package, version in versions.items() if isinstance(versions, Mapping) else ():
            yield str(package), _plain(version)
    framework, version = record.versions.get("framework"), record.versions.get("framework_version")
    if isinstance(framework, str) and framework != NOTHING:
        yield f"framework {framework}", _plain(version)


def _processors(environment: Mapping[str, Any]) -> str:
    available = environment.get(_PROCESSORS)
    return str(len(available)) if isinstance(available, list | tuple) else _plain(available)


def _at(value: Any, name: str) -> Any:
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _plain(value: Any) -> str:
    return NOTHING if value is None else value if isinstance(value, str) else str(value)


def _text(values: Mapping[str, None]) -> str:
    names = list(values)
    more = f" and {len(names) - MOST} more" if len(names) > MOST else ""
    return ", ".join(names[:MOST]) + more if names else NOTHING
