"""What a continued run begins with: the trials that earlier executions finished, and those that they could not end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuneoff.base.files import PLAIN_NAME, read_json
from tuneoff.base.identity import configuration_digest
from tuneoff.errors import ResultsError

if TYPE_CHECKING:
    from tuneoff.capabilities import Reports

FILE_NAME = "continues.json"  # in the folder of the execution that continues
EARLIER = "earlier"  # beside it: `earlier/<execution id>/` holds the sealed files of each earlier execution


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTrial:
    """A trial that ended by itself: completed, pruned, or failed by its workload's doing. It is never trained again."""

    trial_id: str
    configuration: Mapping[str, Any]
    state: str  # completed | pruned | failed
    values: tuple[tuple[int, float | None], ...]  # (epoch, value of the objective's metric; None: not finite), in order
    value: float | None  # the best finite one, as everywhere

    def reported(self, reports: Reports) -> FinishedTrial:
        """Return it with the values that a framework is told of."""
        if reports == "every_epoch":
            return self
        is_told = reports == "at_end" and self.state == "completed"
        return replace(self, values=((self.values[-1][0], self.value),) if is_told else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfinishedTrial:
    """A trial that was submitted and did not end by itself; it is begun again as its next attempt."""

    trial_id: str
    configuration: Mapping[str, Any]
    attempt: int  # the number that its next attempt has


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierExecution:
    """An execution that was interrupted, and how its record says that it ended."""

    execution_id: str
    status: str
    reason: str | None
    charged: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that a run's earlier executions did, both groups in the order of the trials' submission.

    `epochs` were trained and `seconds` of the wall-clock budget were used by them, lost attempts included. Empty for a run
    that begins anew.
    """

    finished: tuple[FinishedTrial, ...] = ()
    unfinished: tuple[UnfinishedTrial, ...] = ()
    executions: tuple[EarlierExecution, ...] = ()
    epochs: int = 0
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.executions)

    @property
    def next_number(self) -> int:
        """The number of the first trial that is new (see `trial_name`): above all that there were."""
        ids = [*(trial.trial_id for trial in self.finished), *(trial.trial_id for trial in self.unfinished)]
        return max((int(name[1:]) for name in ids if name[:1] == "t" and name[1:].isdigit()), default=-1) + 1

    @property
    def count(self) -> int:
        """How many trials were begun."""
        return len(self.finished) + len(self.unfinished)

    def best(self, mode: str) -> FinishedTrial | None:
        """Return the best completed trial, the earliest of equals, or None."""
        completed = [trial for trial in self.finished if trial.state == "completed" and trial.value is not None]
        sign = -1.0 if mode == "max" else 1.0
        return min(completed, key=lambda trial: sign * (trial.value or 0.0), default=None)

    def first_attempts(self) -> dict[str, int]:
        """Return the number of the first attempt in this execution, by trial, where it is not 1."""
        return {trial.trial_id: trial.attempt for trial in self.unfinished}

    def to_json(self) -> dict[str, Any]:
        """Return what `continues.json` holds."""
        import msgspec  # a history is only written where there is one

        data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return data


NO_HISTORY = History()


def history_from_json(data: Any) -> History:
    """Return the history that `to_json` gave.

    Raises:
        ValueError: it is none.
    """
    from tuneoff.experiment.spec import read_dataclass  # an execution that begins anew reads no history

    try:
        history: History = read_dataclass(History, data)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"it is no history: {error}") from error
    if lacking := [field.name for field in fields(History) if field.name not in data]:
        raise ValueError(f"it must have {', '.join(lacking)}")
    for group, key in (("finished", "trial_id"), ("unfinished", "trial_id"), ("executions", "execution_id")):
        for number, item in enumerate(getattr(history, group), start=1):
            if re.match(PLAIN_NAME, name := getattr(item, key)) is None:  # a file or a folder is named after it
                raise ValueError(f"{group}[#{number}].{key} must match {PLAIN_NAME}, but got {name[:120]!r}")
    return history


def read_history(run_dir: Path) -> History:
    """Return the history of an execution; an empty one where it began anew.

    Raises:
        ResultsError: its file cannot be read.
    """
    path = run_dir / FILE_NAME
    try:
        return history_from_json(read_json(path))
    except FileNotFoundError:
        return History()
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ResultsError(f"{path} is damaged: {type(error).__name__}: {error}; run without --continue") from error


def begun(history: History) -> Sequence[FinishedTrial | UnfinishedTrial]:
    """Return every trial that was begun, by its id: the order in which they were numbered."""
    return sorted((*history.finished, *history.unfinished), key=lambda trial: (len(trial.trial_id), trial.trial_id))


def not_begun(configurations: Sequence[Mapping[str, Any]], history: History) -> list[int]:
    """Return the indices of a given list's configurations that no trial was begun with; equal ones count one by one."""
    used = Counter(configuration_digest(trial.configuration) for trial in begun(history))
    left = []
    for index, configuration in enumerate(configurations):
        digest = configuration_digest(configuration)
        if used[digest]:
            used[digest] -= 1
        else:
            left.append(index)
    return left
