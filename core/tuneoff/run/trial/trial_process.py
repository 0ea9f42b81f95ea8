"""What a process keeps between the trials of a run: its event file, its slot, the budget, the workload's imports."""

from __future__ import annotations

import importlib
import logging
import os

from tuneoff.base import clock
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.trial.budget import TrialBudget
from tuneoff.run.trial.locks import Slots
from tuneoff.workload import workload_at

log = logging.getLogger(__name__)


class TrialProcess:
    """What a process keeps between trials of one run: its event file, the slots, the budget.

    It reserves a slot before the imports that its trials need: processes that are started together do not end up on one slot.
    """

    def __init__(self, context: TrialContext, role: str, slot: int = 0) -> None:
        self.context = context
        self.events = EventWriter(context.run_dir, context.execution_id, role, to_stdout=context.events_to_stdout)
        self.slots = Slots(context.run_dir, context.slots)
        self.slots.reserve(slot)
        self.budget = TrialBudget(context)
        self.preferred_slot = slot
        _preload(context)
        self.imported_ns: int | None = clock.monotonic_ns()
        self._limited_as: int | None = None

    def enter(self, slot: int) -> None:
        """Put this process under the limits of a slot, and prefer it from now on: limits need not change then."""
        self.preferred_slot = slot
        if self.context.limits and self._limited_as != slot:
            self._limited_as = slot
            for name, problem in self.context.limits[slot].put_in_force():
                self.events.flag(name, problem)

    def close(self) -> None:
        self.events.close()
        self.slots.close()
        self.budget.close()


def _preload(context: TrialContext) -> None:
    """Import what the workload needs before the first trial starts: imports are overhead, never load time of a trial."""
    try:
        for module in workload_at(context.workload).preload:
            importlib.import_module(module)
    except Exception as error:  # whatever is broken: the trial that needs it fails with the reason
        log.warning("the workload's imports failed: %s", error)


_made: dict[tuple[str, int, str, str], TrialProcess] = {}  # at most one


def trial_process(context: TrialContext, role: str = "worker", slot: int = 0) -> TrialProcess:
    """Return this process's state for a run, made at its first use: call it before the process's imports.

    `slot`: the one that it prefers when it is made.
    """
    key = context.execution_id, os.getpid(), role, context.run_dir
    if key not in _made:
        while _made:
            _made.popitem()[1].close()  # its reserved slot is free again
        _made[key] = TrialProcess(context, role, slot)
    return _made[key]
