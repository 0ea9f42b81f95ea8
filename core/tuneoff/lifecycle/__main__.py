"""`python -m tuneoff.lifecycle RUN_DIR [--undeploy[=SECONDS]]`: the coordinator, the process of a run that drives the adapter.

Exit codes: 0 every step succeeded, 2 a step failed, 3 interrupted (SIGTERM) and un-deployed.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from tuneoff.events.writer import EventWriter
from tuneoff.experiment.spec import run_spec_from_json
from tuneoff.lifecycle.context import SPEC, RunContext
from tuneoff.lifecycle.run import run_lifecycle, undeploy_only
from tuneoff.trial.context import FILE_NAME, TrialContext, load_target
from tuneoff.trial.limits import die_with_parent

RECORD, LATER = "run.json", "later"


def main(arguments: list[str]) -> int:
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    run_dir = Path(arguments[0])
    stored = json.loads((run_dir / SPEC).read_text())
    spec = run_spec_from_json(stored["run"])
    context = RunContext(
        spec=spec,
        run_dir=run_dir,
        execution_id=stored["execution_id"],
        trial_context=TrialContext.read(run_dir / FILE_NAME),
        events=EventWriter(_events_of(run_dir), stored["execution_id"], "coordinator"),
    )
    adapter_class = load_target(spec.adapter_target)
    undeploy = next((text for text in arguments[1:] if text.startswith("--undeploy")), None)
    if undeploy is None:
        code = run_lifecycle(adapter_class, context)
    else:
        seconds = undeploy.partition("=")[2]
        code = undeploy_only(adapter_class, context, float(seconds) if seconds else None)
    context.events.sync()
    return code


def _events_of(run_dir: Path) -> Path:
    """Return where the events' folder lies: those of a run with a record are sealed, so a later un-deploy has its own."""
    return run_dir / LATER if (run_dir / RECORD).exists() else run_dir


if __name__ == "__main__":
    exit_code = main(sys.argv[1:])
    logging.shutdown()
    sys.stdout.flush()
    os._exit(exit_code)  # a framework's threads may not hold up the end of a run that is un-deployed
