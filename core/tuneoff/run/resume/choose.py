"""Which interrupted executions of a results folder can be continued, and which a framework cannot go on with."""

from __future__ import annotations

from pathlib import Path

from tuneoff.errors import UnsupportedError
from tuneoff.experiment.names import run_name
from tuneoff.experiment.plan import Plan
from tuneoff.record.results_folder import is_final, standing
from tuneoff.record.store import RUNS, read_runs
from tuneoff.registry import adapter_class
from tuneoff.run.resume.adopt import has_finished_trials


def to_continue(plan: Plan, results: Path) -> dict[str, Path]:
    """Return the folder of the latest execution of each run that is not done and has finished trials, by run id.

    A run none of whose trials had finished begins anew, and then it is as if it had never been interrupted.

    Raises:
        ResultsError: a record cannot be read.
        UnsupportedError: the adapter of such a run cannot continue it.
    """
    known = standing(list(read_runs(results)))
    found = {}
    for run in plan.counted:
        record = known.get(run.run_id)
        if run.skip_reason is not None or record is None or is_final(record) or not has_finished_trials(record):
            continue
        reason = adapter_class(run.spec.adapter).refuse_continue(run.spec)
        if reason is not None:
            name = run_name(run.label, run.spec)
            raise UnsupportedError(f"{name} cannot be continued: {reason}; leave out --continue, then it is repeated whole")
        found[run.run_id] = results / RUNS / record.run_id / record.execution_id
    return found
