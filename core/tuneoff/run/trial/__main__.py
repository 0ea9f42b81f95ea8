"""`python -m tuneoff.run.trial CONTEXT TRIAL CONFIGURATION [ATTEMPT]`: one trial in its own process.

How reports reach the framework is the adapter's matter: the environment variable TUNEOFF_REPORTER names a factory
"module:name" that is called with the trial's context and returns the `report` callable; without it reports go nowhere.
`--test CONTEXT TRIAL CONFIGURATION OUTPUT` scores the trial's checkpoint on the test split instead; `--worker` and
`--fork-server` are of a pool (`worker_process`). In a file of this name, as what a training spawns imports any other `__main__`.

Exit codes of a trial: 0 it ran all its epochs, ended by itself or was stopped by a decision, 1 it failed, 4 it was refused or
cancelled by the budget. So a framework that goes by exit codes never takes a trial without a result for a complete one.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.identity import configuration_digest
from tuneoff.base.numbers import number_of
from tuneoff.base.process_limits import die_with_parent, end_with
from tuneoff.base.process_state import TrainingState
from tuneoff.base.targets import load_target
from tuneoff.base.terminal import descriptor_as_errors
from tuneoff.base.tracebacks import described
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.checkpoint import EpochMetrics, checkpoint_path, read_checkpoint
from tuneoff.run.trial.children import end_children, hold_children
from tuneoff.run.trial.run_trial import Decision, Report, run_trial
from tuneoff.run.trial.trial_process import process_tree_cpu_ns, trial_process
from tuneoff.run.trial.worker_process import SERVER_FLAG, WORKER_FLAG, fork_server_main, worker_main

ROLE = "trial"  # of the events' process
EXIT_CODES = {"failed": 1, "refused": 4, "cancelled": 4}


def main(arguments: list[str]) -> int:
    die_with_parent()
    if arguments[0] == WORKER_FLAG:
        worker_main(int(arguments[1]))
    elif arguments[0] == SERVER_FLAG:
        fork_server_main(int(arguments[1]), arguments[2:])
    else:
        try:
            return _test(*arguments[1:]) if arguments[0] == "--test" else _run(*arguments)
        finally:
            end_children()
    return 0


def _test(context_file: str, trial_id: str, configuration_file: str, output: str) -> int:
    """Load the checkpoint of a trial, score it on the test split and write the scores as JSON to `output`.

    A score that is not a finite number is null there, and its text is in `non_finite`; not finite in `details` is null too.
    """
    try:
        context = TrialContext.read(context_file)
        hold_children(context.execution_id)
        path, configuration = Path(output).absolute(), _configuration(configuration_file)
        with TrainingState(context.workload, context.folder, context.umask).entered():
            workload = context.make_workload()
            workload.limit_threads(context.threads)
            workload.load(configuration, context.seeds(configuration_digest(configuration)))
            sha256, epoch = None, None
            if workload.has_state:
                checkpoint = read_checkpoint(checkpoint_path(context.run_dir, trial_id))
                workload.load_state_dict(checkpoint.tensors, checkpoint.texts)
                sha256, epoch = checkpoint.sha256, checkpoint.epoch
            scores = workload.test()
            workload.close()
            finite = EpochMetrics.of(scores.values)
            result = {
                "trial": trial_id,
                "scores": finite.metrics,
                "non_finite": finite.non_finite,
                "details": _without_non_finite(dict(scores.details)),
                "checkpoint_sha256": sha256,
                "checkpoint_epoch": epoch,
                "device": workload.device(),
                "cpu_ns": process_tree_cpu_ns(),  # since the start of this process
            }
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps(result, allow_nan=False))
            os.replace(temporary, path)
    except BaseException as error:  # a workload's test may fail in any way: the last line says why
        traceback.print_exc()
        print(described(error), file=sys.stderr)
        return EXIT_CODES["failed"]
    return 0


def _run(context_file: str, trial_id: str, configuration_file: str, attempt: str = "1") -> int:
    context = TrialContext.read(context_file)
    hold_children(context.execution_id)
    with descriptor_as_errors():  # a report may go through standard output: no workload that is imported prints there
        trial_process(context, ROLE).is_replaceable = True  # here, before the reporter's imports
    configuration, target = _configuration(configuration_file), os.environ.get("TUNEOFF_REPORTER")
    report: Report = load_target(target)(context) if target is not None else lambda epoch, metrics: Decision.CONTINUE
    outcome = run_trial(
        context,
        trial_id,
        configuration,
        report,
        attempt=int(attempt),
        framework_id=os.environ.get("TUNEOFF_FRAMEWORK_ID"),
        role=ROLE,
    )
    return EXIT_CODES.get(outcome.state, 0)


def _configuration(path: str) -> dict[str, object]:
    configuration: dict[str, object] = json.loads(Path(path).read_text())
    return configuration


def _without_non_finite(value: Any) -> Any:
    """Return a JSON value, numbers of NumPy's among it or not, with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: _without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(item) for item in value]
    number = number_of(value)
    if number is None:
        return value
    return number if math.isfinite(number) else None


if __name__ == "__main__":
    end_with(main)
