"""`python -m tuneoff.run.trial CONTEXT TRIAL CONFIGURATION [ATTEMPT]`: one trial in its own process.

How reports reach the framework is the adapter's matter: the environment variable TUNEOFF_REPORTER names a factory
"module:name" that is called with the trial's context and returns the `report` callable; without it reports go nowhere.
`--test CONTEXT TRIAL CONFIGURATION OUTPUT` scores the trial's checkpoint on the test split instead.

Exit codes of a trial: 0 it ran all its epochs or was stopped by a decision, 1 it failed, 4 it was refused or cancelled by the
budget. So a framework that goes by exit codes never takes a trial without a result for a complete one.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from tuneoff.base.process_limits import die_with_parent
from tuneoff.base.targets import load_target
from tuneoff.base.tracebacks import described
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Decision, Report, run_trial, trial_process

ROLE = "trial"  # of the events' process
EXIT_CODES = {"failed": 1, "refused": 4, "cancelled": 4}


def main(arguments: list[str]) -> int:
    die_with_parent()
    if arguments[0] == "--test":
        from tuneoff.run.trial.score import score_to_file

        context_file, trial_id, configuration_file, output = arguments[1:5]
        try:
            score_to_file(TrialContext.read(context_file), trial_id, _configuration(configuration_file), Path(output))
        except Exception as error:  # a workload's test may fail in any way: the last line says why
            traceback.print_exc()
            print(described(error), file=sys.stderr)
            return EXIT_CODES["failed"]
        return 0
    context_file, trial_id, configuration_file = arguments[:3]
    attempt = int(arguments[3]) if len(arguments) > 3 else 1
    context = TrialContext.read(context_file)
    trial_process(context, ROLE)  # before the reporter's imports
    outcome = run_trial(
        context,
        trial_id,
        _configuration(configuration_file),
        _reporter(context),
        attempt=attempt,
        framework_id=os.environ.get("TUNEOFF_FRAMEWORK_ID"),
        role=ROLE,
    )
    return EXIT_CODES.get(outcome.state, 0)


def _configuration(path: str) -> dict[str, object]:
    configuration: dict[str, object] = json.loads(Path(path).read_text())
    return configuration


def _reporter(context: TrialContext) -> Report:
    target = os.environ.get("TUNEOFF_REPORTER")
    if target is None:
        return lambda epoch, metrics: Decision.CONTINUE
    report: Report = load_target(target)(context)
    return report


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except SystemExit as error:  # of the workload, or of what it calls: not complete, whatever it says
        code = error.code if isinstance(error.code, int) and error.code != 0 else 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # torch takes over a second to tear down
