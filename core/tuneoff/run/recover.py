"""Write the records of executions whose command was killed before it could."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from tuneoff.base.files import read_json
from tuneoff.errors import ResultsError, TuneoffError
from tuneoff.experiment.plan import Plan
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.record.endings import Verdict
from tuneoff.record.layout import SPEC
from tuneoff.record.store import FILE_NAME, RUNS
from tuneoff.registry import adapter_class
from tuneoff.run.finish import finish
from tuneoff.run.supervisor.prepare import is_named_for

log = logging.getLogger(__name__)


def recover(results: Path, plan: Plan, verdict: Verdict) -> None:
    """Write the record of the plan's executions that have none: their finished trials are kept, their status is the verdict's."""
    planned = {run.run_id: run.spec for run in plan.runs}
    for spec_file in sorted(results.glob(f"{RUNS}/*/*/{SPEC}")):
        folder = spec_file.parent
        if (folder / FILE_NAME).exists():
            continue
        try:
            spec = planned.get(folder.parent.name)
            if spec is None or not is_named_for(spec, folder):
                raise ResultsError("it is no execution of a run that is planned here; remove the folder")
            # of the folder's word only the timeouts: they are no part of the id, and may have changed in the plan since
            timeouts = run_spec_from_json(read_json(spec_file)["run"]).experiment.timeouts
            spec = replace(spec, experiment=replace(spec.experiment, timeouts=timeouts))
            finish(folder, spec, verdict, adapter_class(spec.adapter))
        except (OSError, ValueError, KeyError, TypeError, TuneoffError) as error:
            # killed while it was being made, or made by a plugin that is gone: the folder stays as it is
            log.warning("%s has no record and none can be derived: %s", folder, error)
