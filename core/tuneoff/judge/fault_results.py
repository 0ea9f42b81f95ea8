"""What `tuneoff faults --json` wrote: what became of each run in which something was made to go wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec

from tuneoff.base.files import read_regular
from tuneoff.base.targets import unknown_name
from tuneoff.errors import ResultsError, UnknownNameError

DEFAULTS, ADAPTER = "defaults", "adapter"  # whose settings a run has: the framework's own, or its adapter's
TITLES: Mapping[str, str] = {DEFAULTS: "The framework's own defaults", ADAPTER: "The adapter's settings"}
CONTROL = "none"  # the fault of a run in which nothing goes wrong
NO_SUCH_PART = "the framework has no such part"


class FaultOutcome(StrEnum):
    """What became of a run, from the best to the worst."""

    RECOVERED = "recovered"
    LOST = "trial lost"
    ABORTED = "run aborted"
    HUNG = "hung until the limit"
    WRONG = "silently wrong"


SURVIVED = (FaultOutcome.RECOVERED, FaultOutcome.LOST)  # the answer holds for the trials that were completed
WORST = (FaultOutcome.HUNG, FaultOutcome.WRONG)


class FaultResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `outcome` is None where it was not run, or the fault did not strike (`is_missed`), and `reason` says why."""

    adapter: str  # its label: "serial@kubernetes"
    setting: str
    fault: str
    outcome: str | None
    reason: str
    seconds: float | None = None
    wasted_seconds: float | None = None
    is_missed: bool = False
    file: str = ""  # that it was read from

    @property
    def was_tried(self) -> bool:
        """Whether something went wrong in it."""
        return self.outcome is not None and self.fault != CONTROL


class FaultFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of results; `faults`: the names of all that the command knows, also of those that were not tried."""

    runs: list[FaultResult]
    faults: list[str] = []


def read_faults(paths: Sequence[Path], wanted: Sequence[str] = ()) -> list[FaultResult]:
    """Read files that `tuneoff faults --json` wrote, or all `*.json` of a folder.

    Raises:
        ResultsError: there is none, or it is none.
        UnknownNameError: no file knows of a fault that is asked for.
    """
    files = []
    for path in paths:
        in_path = sorted(path.glob("*.json")) if path.is_dir() else [path]
        if not in_path:
            raise ResultsError(f"{path} holds no *.json; write one: tuneoff faults --json > faults.json")
        files += [read_fault_file(file, follow=True) for file in in_path]
    names = [name for file in files for name in (*file.faults, *(run.fault for run in file.runs))]
    faults = [name for name in dict.fromkeys(names) if name != CONTROL]
    for name in wanted if files else ():
        if name not in faults:
            raise UnknownNameError(unknown_name("fault", name, faults))
    return [run for file in files for run in file.runs]


def read_fault_file(path: Path, *, follow: bool = False) -> FaultFile:
    """Read one file; `follow`: a link too, for a path that the user gave.

    Raises:
        ResultsError: it cannot be read, or is none.
    """
    try:
        file = msgspec.json.decode(read_regular(path, follow=follow), type=FaultFile)
    except OSError as error:
        raise ResultsError(f"{path} cannot be read: {error.strerror}; name what `tuneoff faults --json` wrote") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ResultsError(f"{path} is not what `tuneoff faults --json` writes: {error}; write it again") from error
    return FaultFile(runs=[msgspec.structs.replace(run, file=str(path)) for run in file.runs], faults=file.faults)
