"""The test step: the best model itself is scored once on the test split, in a fresh trial process."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

from tuneoff.adapter import Best
from tuneoff.base.files import replacing
from tuneoff.errors import StepError
from tuneoff.run.lifecycle.context import BEST_CONFIGURATION, RunContext
from tuneoff.run.trial.limits import as_parent
from tuneoff.workload import Scores

RESULT = "test.json"


def score_best(context: RunContext, best: Best) -> Scores:
    """Score the checkpoint of the best trial and log it as `tested`; a score that is no finite number is NaN in the result.

    Raises:
        StepError: the process failed or took longer than `timeouts.test_seconds`.
    """
    configuration_file = context.run_dir / BEST_CONFIGURATION
    with replacing(configuration_file) as file:
        file.write(json.dumps(dict(best.configuration)).encode())
    output = context.run_dir / RESULT
    command = [sys.executable, "-m", "tuneoff.run.trial", "--test", str(context.trial_context.path), best.trial_id]
    command += [str(configuration_file), str(output)]
    limit = context.spec.experiment.timeouts.test_seconds
    try:
        environment = {**os.environ, **as_parent()}
        done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as error:
        raise StepError(f"the test must end within {limit:g} s, but did not; raise timeouts.test_seconds") from error
    sys.stderr.write(done.stderr)  # of the coordinator, and so its log
    if done.returncode != 0 or not output.exists():
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise StepError(f"the best trial {best.trial_id} could not be tested: {lines[-1]}")
    result = json.loads(output.read_text())
    odd = {"non_finite": result["non_finite"]} if result["non_finite"] else {}
    context.events.write(
        "tested",
        trial=best.trial_id,
        scores=result["scores"],
        checkpoint_sha256=result["checkpoint_sha256"],
        device=result["device"],
        cpu_ns=result["cpu_ns"],
        **odd,
    )
    values = {name: math.nan if score is None else score for name, score in result["scores"].items()}
    return Scores(values=values, details=result["details"])
