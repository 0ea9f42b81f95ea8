"""What a trial's process wrote about itself before it ended, read from its own event file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tuneoff.record.events.reader import Statistics, read_file
from tuneoff.record.events.schema import Epoch, Refused, TrialEnded, TrialStarted
from tuneoff.record.events.writer import FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Epochs that were run, the slot that was held, and whether the process wrote the attempt's end (or its refusal)."""

    epochs: int = 0
    slot: int | None = None
    has_ended: bool = False


def read_progress(run_dir: Path, pid: int, trial_id: str, attempt: int) -> Progress:
    """Return the progress of an attempt whose process is gone; an empty one if it wrote nothing.

    Raises:
        ResultsError: its event file cannot be read.
    """
    epochs, slot, has_ended = 0, None, False
    for path in (run_dir / FOLDER).glob(f"trial-{pid}-*.jsonl"):  # several, where the system used the pid again
        for _, event in read_file(path, Statistics()):
            if isinstance(event, Refused):
                has_ended = has_ended or event.trial == trial_id
            elif isinstance(event, TrialStarted | Epoch | TrialEnded) and (event.trial, event.attempt) == (trial_id, attempt):
                if isinstance(event, TrialStarted):
                    slot = event.slot
                elif isinstance(event, Epoch):
                    epochs = event.epoch
                else:
                    has_ended = True
    return Progress(epochs=epochs, slot=slot, has_ended=has_ended)
