"""The note of a worker whose folder is not here, kept by its events."""

from __future__ import annotations

import math

from tuneoff.experiment.spec import Objective
from tuneoff.record.events.schema import Epoch, Event, TrialEnded, TrialSubmitted
from tuneoff.record.events.schema import Stage as TimedStage
from tuneoff_adapters.optuna.note import Note, Stage


def follow(note: Note, event: Event, objective: Objective) -> None:
    """Bring a note to what an event of its worker says, as the worker would itself."""
    if isinstance(event, TrialSubmitted):
        note.stage, note.number, note.trial = Stage.RUNNING, int(event.framework_id or 0), int(event.trial[1:])
        note.attempt, note.value = event.attempt, math.nan
        note.submitted += event.attempt == 1
    elif isinstance(event, Epoch):
        value = event.metrics[objective.metric]
        if value is not None and objective.is_better(value, than=None if math.isnan(note.value) else note.value):
            note.value = value
    elif isinstance(event, TrialEnded):
        note.stage = {"completed": Stage.COMPLETED, "pruned": Stage.PRUNED}.get(event.state, Stage.FAILED)
    elif isinstance(event, TimedStage) and event.name == "tell":
        note.stage = Stage.IDLE
