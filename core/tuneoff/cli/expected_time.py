"""How long a matrix will take, by earlier folders of the same runs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tuneoff.base.format import duration_text
from tuneoff.cli.folders import plans
from tuneoff.errors import TuneoffError

if TYPE_CHECKING:
    from tuneoff.experiment.plan import Plan


def expected_duration(plan: Plan) -> str:
    """Return how long a matrix will take, by the newest folder that has runs of it by each framework."""
    from tuneoff.record.store import read_runs
    from tuneoff.tell.live.estimate import Estimate

    estimate, labels = Estimate(plan.to_run), {run.run_id: run.label for run in plan.to_run}
    with contextlib.suppress(TuneoffError):  # an earlier folder that cannot be read must not stop a new one
        for folder, earlier in plans():
            if {labels[run.run_id] for run in earlier.to_run if run.run_id in labels} != set(labels.values()):
                continue
            done = [record for record in read_runs(folder) if record.status == "done" and record.run_id in labels]
            took = {record.run_id: seconds for record in done if (seconds := estimate.taken(record)) is not None}
            total = estimate.seconds(labels, took, None)
            if total is not None and {labels[run_id] for run_id in took} == set(labels.values()):
                return f"about {duration_text(total)}, by {folder}"
    return "how long it takes is known after the warm-ups"
