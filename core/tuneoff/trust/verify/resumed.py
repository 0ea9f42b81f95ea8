"""Hold what a continued run took over to the executions that it continues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tuneoff.errors import ResultsError
from tuneoff.record.digests import seal
from tuneoff.record.events.writer import FOLDER as EVENTS
from tuneoff.record.history import EARLIER, History, read_history
from tuneoff.record.history import FILE_NAME as CONTINUES
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.schema import FILE_NAME as SAMPLES
from tuneoff.record.store import FILE_NAME
from tuneoff.trust.verify.other_files import FileFault
from tuneoff.trust.verify.record_differences import differences


def history_faults(folder: Path, history: History) -> Iterator[FileFault]:
    """Yield what the adapter was told otherwise than the earlier executions' events say."""
    stored = read_history(folder)
    for difference in differences(stored.to_json(), history.to_json()):
        yield FileFault(CONTINUES, f"{difference.path}: {difference.text}")


def earlier_faults(folder: Path, earlier: Sequence[RunRecord], notes: list[str]) -> Iterator[FileFault]:
    """Yield what was taken over otherwise than it lies in the folder of its own execution, beside this one."""
    for record in earlier:
        beside = folder.parent / record.execution_id
        copy = folder / EARLIER / record.execution_id
        if not (beside / FILE_NAME).exists():
            notes.append(f"the folder of execution {record.execution_id}, which it continues, is not there")
            continue
        try:
            taken, own = ({one.name: one.sha256 for one in seal(where)} for where in (copy, beside))
        except ResultsError as error:
            yield FileFault(f"{EARLIER}/{record.execution_id}", str(error))
            continue
        names = {name for name in (*taken, *own) if name.startswith(f"{EVENTS}/") or name == SAMPLES}
        for name in sorted(names):
            if taken.get(name) != own.get(name):
                text = f"is not what execution {record.execution_id} has in its own folder"
                yield FileFault(f"{EARLIER}/{record.execution_id}/{name}", text)
