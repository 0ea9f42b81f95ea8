"""The runs of a results folder: every planned one with how it ended, and the scope that compared ones share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tuneoff.experiment.plan import PlannedRun
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import FAILED, RunRecord
from tuneoff.run.run_ends import Without, came_out

POOL = "serial"  # the adapter that uses no framework: what the others are held to
EMULATED = "emulated, so in no comparison"
ENDED = ("done", *FAILED)
NOT_BEGUN = "not run yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What compared runs share. `text` names it in tables: `random`, `tpe + asha digits-300-small`."""

    sampler: str
    pruner: str
    variant: str
    task: str  # "": the file has no tasks
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A planned run of a group. `record`: the execution that stands for it, of a run that is another's the other's."""

    run_id: str
    spec: RunSpec
    record: RunRecord | None
    status: str  # done, failed, timeout, interrupted, skipped, running, planned
    reason: str | None = None
    will_run: bool = True  # False: skipped, and no other run stands for it
    is_added: bool = False  # its seed was added after the folder's first run: no verdict rests on it

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def execution_id(self) -> str | None:
        """The execution that stands for it; None: it was never started."""
        return self.record.execution_id if self.record is not None else None

    @property
    def is_skipped(self) -> bool:
        return self.status == "skipped"

    @property
    def is_failure(self) -> bool:
        """Whether it counts as worse than any success: it was tried itself, and came to nothing."""
        return self.status in FAILED

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its own flags."""
        own = self.record.flags if self.record is not None and not self.is_skipped else ()
        return tuple(dict.fromkeys(flag.name for flag in own))

    @property
    def has_ended(self) -> bool:
        """Whether it was tried to its end: an interrupted run is to be run again."""
        return self.record is not None and self.record.status in ENDED

    @property
    def is_done(self) -> bool:
        return self.record is not None and self.record.status == "done"

    @property
    def has_failed(self) -> bool:
        return self.record is not None and self.record.status in FAILED

    def metric(self, name: str) -> MetricValue | None:
        """Return a metric of its record as it stands there; what counts of it is `run_values.value`."""
        return None if self.record is None else self.record.metrics.get(name)


def run_of(run: PlannedRun, standing: Mapping[str, RunRecord], without_record: Without, added_seeds: Collection[int] = ()) -> Run:
    """Return a planned run with the record that stands for it, or how it ended without one."""
    record = standing.get(run.run_id if run.same_as is None else run.same_as)
    status, reason = came_out(run, record, without_record)
    will_run = run.skip_reason is None or run.same_as is not None
    return Run(
        run_id=run.run_id,
        spec=run.spec,
        record=record if will_run else None,
        status=status,
        reason=NOT_BEGUN if (status, reason) == ("planned", None) else reason,
        will_run=will_run,
        is_added=run.spec.seed in added_seeds,
    )
