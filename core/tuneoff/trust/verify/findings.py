"""What verification found: problems, one line each, and each value of a stored record that differs from the recomputed one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, get_args

from msgspec import UNSET

from tuneoff.base.output import one_line
from tuneoff.record.run_record import AttemptRecord, EpochRecord, RunRecord, TrialRecord
from tuneoff.trust.history_check.counterexample import Counterexample

Check = Literal[
    "version", "schema", "plan", "seal", "file", "clock", "history", "verdict", "sum", "value"
]  # causes first, then what they change
CHECKS: tuple[Check, ...] = get_args(Check)


MOST_KEPT = 500  # problems of an execution: a folder of a thousand runs must fit into memory even if nothing is as it was
TOLERANCE = 1e-9  # relative, of decimal numbers: another machine's library may round the last bits otherwise; integers are exact
SHOWN = 60  # characters of a value in a line
_KEYS = {  # what names an item of a list; where it is not unique, and in other lists, items go by position: #1, #2
    "trials": "trial",
    "attempts": "attempt",
    "epochs": "epoch",
    "steps": "step",
    "stages": "name",
    "flags": "name",
    "declared": "symbol",
}
_COUNTED = ("steps", "refusals", "stages", "flags", "declared")

NO_READERS: Mapping[int, str] = {}
COMPARED = "stored {1}, recomputed {2}"
TOO_DEEP = "is nested too deeply to be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is not as it must be. `stored` and `recomputed` are UNSET where there is no such value.

    `where`: path in the results folder; `what`: a field, a metric, a file beneath it, or a process.
    """

    check: Check
    where: str
    what: str = ""
    text: str
    stored: Any = UNSET
    recomputed: Any = UNSET
    shown_by: Counterexample | None = None  # of a broken history

    @property
    def line(self) -> str:
        """The problem as one line."""
        return one_line(f"{self.where}: {self.what}{': ' if self.what else ''}{self.text}")

    def to_json(self) -> dict[str, Any]:
        """Return the problem as JSON values."""
        values = {"stored": self.stored, "recomputed": self.recomputed}
        present = {name: value for name, value in values.items() if value is not UNSET}
        if self.shown_by is not None:
            present["events"] = self.shown_by.events
        return {"check": self.check, "where": self.where, "what": self.what, "text": self.text, **present}


class Fault(NamedTuple):
    """What is wrong with a metric, or a file of an execution."""

    what: str
    text: str


@dataclass(slots=True, kw_only=True)
class Findings:
    """The problems of one place in the results folder."""

    where: str
    problems: list[Problem] = field(default_factory=list)

    def add(
        self,
        check: Check,
        what: str,
        text: str,
        stored: Any = UNSET,
        recomputed: Any = UNSET,
        shown_by: Counterexample | None = None,
        where: str | None = None,
    ) -> None:
        """Note a problem; `where`: another place than this one."""
        values = {"stored": stored, "recomputed": recomputed, "shown_by": shown_by}
        problem = Problem(check=check, where=where or self.where, what=what, text=text, **values)
        if check != "file" or problem not in self.problems:  # who derives and who seals may meet the same file
            self.problems.append(problem)

    def compare(self, check: Check, stored: Any, recomputed: Any, path: str = "", what: str = "", text: str = COMPARED) -> None:
        """Note a problem for each difference between two JSON values, of `what` where it is not that of its own path."""
        for difference in differences(stored, recomputed, path):
            shown = text.format(difference.path, show(difference.stored), show(difference.recomputed))
            self.add(check, what or difference.path, shown, difference.stored, difference.recomputed)

    def add_all(self, check: Check, faults: Iterable[Fault]) -> None:
        """Note a problem for each fault."""
        for fault in faults:
            self.add(check, fault.what, fault.text)


@dataclass(slots=True, kw_only=True)
class VerifiedExecution(Findings):
    """What the verification of one execution came to.

    `notes`: what a reader should know and is not a defect. `stated`: what run.json alone states, so that it was not recomputed.
    """

    run_id: str
    execution_id: str
    status: str | None = None  # None: it has no readable record
    is_empty: bool = False  # no file of events and no record: nothing was done, or all was removed
    has_special_files: bool = False  # links, pipes, devices: nothing of it may be opened
    left_out: int = 0  # problems beyond the first 500, causes before what they change
    notes: list[str] = field(default_factory=list)
    stated: list[str] = field(default_factory=list)
    trials: int = 0
    events: int = 0
    samples: int = 0
    values: int = 0

    def close(self) -> None:
        """Put causes before what they change, else in the order found, and keep the first ones."""
        self.problems.sort(key=lambda problem: CHECKS.index(problem.check))
        self.left_out = max(0, len(self.problems) - MOST_KEPT)
        del self.problems[MOST_KEPT:]


class ValueDifference(NamedTuple):
    """A value that differs; UNSET: there is none on that side."""

    path: str
    stored: Any
    recomputed: Any


def differences(stored: Any, recomputed: Any, path: str = "") -> Iterator[ValueDifference]:
    """Yield what differs between two JSON values."""
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        for key in (*stored, *(key for key in recomputed if key not in stored)):
            below = f"{path}.{key}" if path else key
            yield from differences(stored.get(key, UNSET), recomputed.get(key, UNSET), below)
    elif isinstance(stored, list) and isinstance(recomputed, list):
        key = _KEYS.get(path.rpartition(".")[2].partition("[")[0] if not path.endswith("]") else "", "")
        names = [[_key(item, key) for item in items] for items in (stored, recomputed)]
        if key and all(None not in side and len(set(side)) == len(side) for side in names):
            old, new = (dict(zip(side, items, strict=True)) for side, items in zip(names, (stored, recomputed), strict=True))
            for name in (*old, *(name for name in new if name not in old)):
                yield from differences(old.get(name, UNSET), new.get(name, UNSET), f"{path}[{name}]")
            if names[0] != names[1] and set(names[0]) == set(names[1]):
                yield ValueDifference(f"the order of {path}", *names)
        else:
            for number, (before, after) in enumerate(zip_longest(stored, recomputed, fillvalue=UNSET), 1):
                yield from differences(before, after, f"{path}[#{number}]")
    elif not is_same(stored, recomputed):
        yield ValueDifference(path, stored, recomputed)


def is_same(stored: Any, recomputed: Any) -> bool:
    """Tell whether two JSON values without parts are equal, decimal numbers to `TOLERANCE`."""
    if isinstance(stored, float) or isinstance(recomputed, float):
        if not _is_number(stored) or not _is_number(recomputed):
            return False
        return math.isclose(stored, recomputed, rel_tol=TOLERANCE, abs_tol=0.0)
    return type(stored) is type(recomputed) and bool(stored == recomputed)


def count_values(record: RunRecord) -> int:
    """Return how many stored values of a record are recomputed: metrics with what they say of themselves, and fields."""
    attempts = [attempt for trial in record.trials for attempt in trial.attempts]
    epochs = sum(len(attempt.epochs) for attempt in attempts)
    return (
        len(fields(record))
        + sum(len(getattr(record, name)) for name in _COUNTED)
        + len(record.metrics) * 7  # value, unit, kind, source, n_samples, coverage, reason_if_null
        + len(record.trials) * len(fields(TrialRecord))
        + len(attempts) * len(AttemptRecord.__struct_fields__)
        - sum(attempt.visible is UNSET for attempt in attempts)
        + epochs * len(EpochRecord.__struct_fields__)
    )


def show(value: Any) -> str:
    """Return a value as it stands in a line."""
    if value is UNSET:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _key(item: Any, key: str) -> str | int | None:
    name = item.get(key) if isinstance(item, dict) else None
    return name if isinstance(name, str | int) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_object(
    content: bytes, version: int, findings: Findings, what: str = "", readers: Mapping[int, str] = NO_READERS
) -> dict[str, Any] | None:
    """Return a JSON object of this format version; else None, and why. Keys that stand twice in one object are named.

    `readers`: by earlier versions, the last commit that reads them.
    """
    twice: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            names = [name for name, _ in pairs]
            twice.extend(name for name in entries if names.count(name) > 1)
        return entries

    try:
        value = json.loads(content, object_pairs_hook=collect, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        findings.add("schema", what, f"is damaged: {TOO_DEEP if isinstance(error, RecursionError) else error}")
        return None
    stored = value.get("format_version") if isinstance(value, dict) else None
    is_number = type(stored) is int
    if not is_number or stored != version:
        reader = next((commit for earlier, commit in readers.items() if earlier == stored), None)
        writer = f"tuneoff as of commit {reader}" if reader is not None else "the tuneoff that wrote it"
        text = f"has format version {stored!r}, but this tuneoff reads version {version}; use {writer}"
        findings.add("version" if is_number else "schema", what, text)
        return None
    for name in twice:
        findings.add("schema", f"{what} {name}".strip(), "stands twice in one object: readers take one or the other")
    return dict(value)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON value")
