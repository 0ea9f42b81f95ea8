"""`python -m tuneoff_adapters.katib.pod TRIAL NAME=VALUE ...`: the program of a trial's pod.

It decodes Katib's parameters, runs the trial with its events on standard output, reports each epoch in the file that Katib's
collector reads, and passes the best checkpoint of a completed trial out after its events; it does not end before that collector
has begun. Whatever else it or its workload
prints goes to standard error. It is imported anew for each trial, so it imports little.

Exit codes: those of `python -m tuneoff.run.trial`, and 5 for a trial that its script stopped, so that Katib counts it as failed
and never as its best.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tuneoff.base.identity import configuration_digest
from tuneoff.base.process_limits import die_with_parent
from tuneoff.errors import ExperimentError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.layout import POD
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff.run.trial.run_trial import run_trial, trial_process
from tuneoff_adapters.katib import sidecar
from tuneoff_adapters.katib.metrics_file import FileReport, create_mark, create_metrics_file
from tuneoff_adapters.katib.space import KatibSpace
from tuneoff_adapters.kubernetes import layout

PRUNED = 5
EXIT_CODES = {"completed": 0, "failed": 1, "refused": 4, "cancelled": 4, "pruned": PRUNED}


def main(arguments: Sequence[str]) -> int:
    """Run the trial and return the exit code."""
    metrics_file = os.environ.get(layout.METRICS_FILE_VARIABLE, layout.METRICS_FILE)
    create_metrics_file(metrics_file)  # first of all: until then the collector uses up a core
    create_mark(metrics_file, os.getppid())
    die_with_parent()
    output = os.dup(1)  # the writer of events takes standard output for itself
    katib_trial, values = arguments[0], parameters(arguments[1:])
    context = _context()
    trial_process(context, POD)  # before anything else: from here on the process is seen
    settings = json.loads((_config_dir() / layout.TRANSLATION_KEY).read_text())
    try:
        configuration = KatibSpace.from_json(settings).decode(values)
    except ExperimentError as error:
        print(f"trial {katib_trial} has no configuration: {error}", file=sys.stderr)
        return EXIT_CODES["failed"]
    trial_id = layout.trial_id(katib_trial)
    report = FileReport(metrics_file, context.metric, settings[layout.STOPS].get(configuration_digest(configuration)))
    outcome = run_trial(context, trial_id, configuration, report, framework_id=katib_trial, role=POD)
    if outcome.state == "completed":
        _pass_checkpoint_out(checkpoint_path(context.run_dir, trial_id), output, settings[layout.CHECKPOINT_BYTES])
        sidecar.wait_for_collector(katib_trial)
    return EXIT_CODES[outcome.state]


def parameters(arguments: Sequence[str]) -> Mapping[str, str]:
    """Return the texts that Katib put in place of its parameters, from `NAME=VALUE` words."""
    return {name: value for name, _, value in (word.partition("=") for word in arguments)}


def _config_dir() -> Path:
    return Path(os.environ.get(layout.CONFIG_DIR_VARIABLE, layout.CONFIG_DIR))


def _context() -> TrialContext:
    """Return the trial's context with the pod's own folder, written there as `run_trial` reads it."""
    context = TrialContext.read(_config_dir() / layout.CONTEXT_KEY)
    run_dir = Path(os.environ.get(layout.RUN_DIR_VARIABLE, context.run_dir))
    run_dir.mkdir(parents=True, exist_ok=True)
    context = replace(context, run_dir=str(run_dir))
    context.write()
    return context


def _pass_checkpoint_out(path: Path, output: int, most_bytes: int) -> None:
    from tuneoff_adapters.kubernetes.checkpoint_lines import encode

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return  # a workload without state
    with open(output, "wb") as log:
        log.writelines(encode(content, most_bytes))


def _run(arguments: Sequence[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as error:  # of the workload, or of what it calls: not complete, whatever it says
        return error.code if isinstance(error.code, int) and error.code != 0 else 1


if __name__ == "__main__":
    code = _run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # torch takes over a second to tear down
