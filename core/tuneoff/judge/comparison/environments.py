"""The one comparison of two environments: each thing as it is on both sides, and on which level a difference lies."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tuneoff.base.output import columns, one_line
from tuneoff.run.machine import stored_states

Environment = Mapping[str, Any]  # as `tuneoff.record.environment.capture` has it
Level = Literal["identity", "numerics", "machine", "notice"]
UNKNOWN = "not recorded"
ABSENT = "not installed"
NO_ACCELERATORS = "none"
LONGEST = 60  # letters of a cell in the table
MOST_BYTES = 10**18  # of memory: more is none, and a larger integer breaks arithmetic with decimal ones
_CPU = ("vendor", "family", "model", "stepping", "name")
_Fact = tuple[str, Level, Callable[[Environment], Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    """One thing, as it is in A (of a bundle: in the bundle) and in B (here).

    `level`: identity: another value makes it another experiment; numerics: equal bits cannot be expected then; machine: times
    cannot be compared then; notice: named where something differs. `is_same` is None where it is not known.
    """

    name: str
    level: Level
    a: str
    b: str
    is_same: bool | None


def environment_row(name: str, level: Level, a: str, b: str, *, is_wrong: bool = False) -> EnvironmentRow:
    """Return the row of two texts, which are the same where they are equal, and not `is_wrong`."""
    is_same = None if UNKNOWN in (a, b) else a == b and not is_wrong
    return EnvironmentRow(name=name, level=level, a=a, b=b, is_same=is_same)


def compare_environments(
    a: Sequence[Environment], b: Sequence[Environment], levels: Mapping[str, Level] | None = None, *, recorded: bool = False
) -> list[EnvironmentRow]:
    """Return a row for each package that one side names, and for each fact of the machine.

    `levels`: of packages; the others are of level notice. `recorded`: both sides are runs, whose records tell more than what can
    be captured before one.
    """
    packages = dict.fromkeys(name for environment in (*a, *b) for name in _versions(environment))
    versions: list[_Fact] = [(name, (levels or {}).get(name, "notice"), partial(_version, name)) for name in packages]
    return [_row(*fact, a, b) for fact in (_PYTHON, *versions, *_MACHINE, *(_OF_RUNS if recorded else ()))]


def recorded_facts(environment: Environment) -> dict[str, str]:
    """Return what a run ran on and with, but packages, as far as it is recorded: name -> value."""
    commit: _Fact = ("workload's commit", "notice", _at("workload", "git", "commit"))  # equal code may have several
    facts = ((name, read(environment)) for name, _, read in (_PYTHON, *_MACHINE, *_OF_RUNS, commit))
    return {name: fact for name, fact in facts if isinstance(fact, str) and fact != NO_ACCELERATORS}


def is_same_machine(a: Sequence[Environment], b: Sequence[Environment]) -> bool:
    """Tell whether times can be compared: the same kind of processor, as many of them, and accelerators; without a record, no."""
    return any(a) and any(b) and all(row.a == row.b for row in compare_environments(a, b) if row.name in OF_TIMES)


def sentinel_ratio(a: Sequence[Environment], b: Sequence[Environment]) -> float | None:
    """Return how many times as long the guard's calculation took before the runs of B, by medians; None: a side has none."""
    states = [stored_states(environment.get("machine_before") for environment in side) for side in (a, b)]
    sides = [[state.sentinel_ns for state in side] for side in states]
    return statistics.median(sides[1]) / statistics.median(sides[0]) if all(sides) else None


def environment_table(rows: Iterable[EnvironmentRow], a: str, b: str) -> str:
    """Return the table of both sides, which are called `a` and `b`."""
    marks = {True: "same", False: "CHANGED", None: "unknown"}
    return columns(("", a, b, ""), [(row.name, _short(row.a), _short(row.b), marks[row.is_same]) for row in rows])


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


def _row(
    name: str, level: Level, read: Callable[[Environment], Any], a: Sequence[Environment], b: Sequence[Environment]
) -> EnvironmentRow:
    sides = [{value for environment in side if (value := read(environment)) is not None} for side in (a, b)]
    if all(sides) and read is _instruction_sets:  # where they differ, what is in one side alone
        first, second = sides
        if first == second and len(first) == 1:
            same = f"the same {len(next(iter(first)))}"
            return environment_row(name, level, same, same)
        more = [
            " ".join(sorted(frozenset.union(*side) - frozenset.intersection(*rest)))
            for side, rest in ((first, second), (second, first))
        ]
        return environment_row(name, level, *(f"also {names or 'nothing more'}" for names in more), is_wrong=first != second)
    texts = [[f"{len(value)} known" if isinstance(value, frozenset) else value for value in side] for side in sides]
    return environment_row(name, level, *(" / ".join(sorted(side)) or UNKNOWN for side in texts))


def _at(*path: str) -> Callable[[Environment], str | None]:
    def read(environment: Environment) -> str | None:
        value = _part(environment, *path)
        return None if value is None else str(value)

    return read


def _part(environment: Environment, *path: str) -> Any:
    value: Any = environment
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _versions(environment: Environment) -> Mapping[str, Any]:
    versions = environment.get("versions")
    return versions if isinstance(versions, Mapping) else {}


def _version(package: str, environment: Environment) -> str | None:
    versions = _versions(environment)
    return str(versions[package] or ABSENT) if package in versions else None


def _cpu(environment: Environment) -> str | None:
    vendor, family, model, stepping, name = (_part(environment, "cpu", key) for key in _CPU)
    return f"{name or vendor} ({family}/{model}/{stepping})" if name or family is not None else None


def _instruction_sets(environment: Environment) -> frozenset[str] | None:
    sets = _part(environment, "cpu", "instruction_sets")
    return frozenset(map(str, sets)) if sets and isinstance(sets, list) else None


def _available(environment: Environment) -> str | None:
    available = environment.get("cpus_available")
    return str(len(available)) if isinstance(available, list) else None


def _gigabytes(environment: Environment) -> str | None:
    total = environment.get("memory_total_bytes")
    return f"{total / 1e9:.0f} GB" if isinstance(total, int | float) and abs(total) < MOST_BYTES else None


def _accelerators(environment: Environment) -> str:
    accelerators = environment.get("accelerators")
    return json.dumps(accelerators, sort_keys=True) if accelerators else NO_ACCELERATORS


_PYTHON: _Fact = ("python", "notice", _at("python"))
_MACHINE: tuple[_Fact, ...] = (
    ("architecture", "numerics", _at("machine")),
    ("CPU", "numerics", _cpu),
    ("CPU instruction sets", "numerics", _instruction_sets),
    ("C library", "numerics", _at("libc")),
    ("logical processors", "machine", _at("cpu", "logical_count")),
    ("available processors", "machine", _available),
    ("memory", "notice", _gigabytes),
    ("accelerators", "machine", _accelerators),
    ("kernel", "notice", _at("kernel")),
)
OF_TIMES = ("architecture", "CPU", *(name for name, level, _ in _MACHINE if level == "machine"))
_OF_RUNS: tuple[_Fact, ...] = (
    ("host", "notice", _at("host")),
    ("container", "notice", _at("container")),
    ("virtual machine", "notice", _at("virtual_machine")),
    ("niceness", "notice", _at("niceness")),
    ("power meter", "notice", _at("power", "meter")),
    ("power is", "notice", _at("power", "kind")),
    ("limit of processors", "notice", _at("limits", "cpus")),
    ("workload's version", "notice", _at("workload", "version")),
    ("workload's code", "notice", _at("workload", "sha256")),
    ("data", "notice", _at("data", "name")),
    ("version of the data", "notice", _at("data", "version")),
)
