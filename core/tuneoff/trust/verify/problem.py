"""What verification found: problems, one line each, and what was checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from msgspec import UNSET

Check = Literal[
    "version", "schema", "plan", "seal", "file", "clock", "verdict", "sum", "value"
]  # causes first, then what they change
CHECKS: tuple[Check, ...] = get_args(Check)


MOST_KEPT = 500  # problems of an execution: a folder of a thousand runs must fit into memory even if nothing is as it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is not as it must be. `stored` and `recomputed` are UNSET where there is no such value.

    `where`: path in the results folder; `what`: a field, a metric, a file beneath it, or a process.
    """

    check: Check
    where: str
    what: str
    text: str
    stored: Any = UNSET
    recomputed: Any = UNSET

    @property
    def line(self) -> str:
        """The problem as one line."""
        return " ".join(f"{self.where}: {self.what}{': ' if self.what else ''}{self.text}".split())

    def to_json(self) -> dict[str, Any]:
        """Return the problem as JSON values."""
        values = {"stored": self.stored, "recomputed": self.recomputed}
        known = {name: value for name, value in values.items() if value is not UNSET}
        return {"check": self.check, "where": self.where, "what": self.what, "text": self.text, **known}


@dataclass(slots=True, kw_only=True)
class VerifiedExecution:
    """What the verification of one execution came to.

    `notes`: what a reader should know and is no defect. `stated`: what run.json alone states, so that it was not recomputed.
    """

    where: str
    run_id: str
    execution_id: str
    status: str | None = None  # None: it has no readable record
    problems: list[Problem] = field(default_factory=list)
    is_empty: bool = False  # no file of events and no record: nothing was done, or all was removed
    has_special_files: bool = False  # links, pipes, devices: nothing of it may be opened
    left_out: int = 0  # problems beyond the first 500, causes before what they change
    notes: list[str] = field(default_factory=list)
    stated: list[str] = field(default_factory=list)
    trials: int = 0
    events: int = 0
    samples: int = 0
    values: int = 0

    def add(self, check: Check, what: str, text: str, stored: Any = UNSET, recomputed: Any = UNSET) -> None:
        """Note a problem of this execution."""
        problem = Problem(check=check, where=self.where, what=what, text=text, stored=stored, recomputed=recomputed)
        if check != "file" or problem not in self.problems:  # who derives and who seals may meet the same file
            self.problems.append(problem)

    def close(self) -> None:
        """Put causes before what they change, else in the order found, and keep the first ones."""
        self.problems.sort(key=lambda problem: CHECKS.index(problem.check))
        self.left_out = max(0, len(self.problems) - MOST_KEPT)
        del self.problems[MOST_KEPT:]
