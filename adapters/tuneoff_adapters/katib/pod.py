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

from tuneoff.base.identity import configuration_digest
from tuneoff.base.process_limits import die_with_parent, end_with
from tuneoff.errors import ExperimentError
from tuneoff.record.layout import POD
from tuneoff.run.trial.children import hold_children
from tuneoff.run.trial.run_trial import run_trial
from tuneoff.run.trial.trial_process import trial_process
from tuneoff_adapters.katib import sidecar
from tuneoff_adapters.katib.metrics_file import FileReport, create_mark, create_metrics_file
from tuneoff_adapters.katib.space import KatibSpace
from tuneoff_adapters.kubernetes import in_pod, layout

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
    context = in_pod.own_context()
    hold_children(context.execution_id, in_container=True)
    process = trial_process(context, POD)  # before anything else: from here on the process is seen
    process.is_replaceable, events = True, process.events
    settings = json.loads((in_pod.config_dir() / layout.TRANSLATION_KEY).read_text())
    in_pod.compare_code(settings.get(layout.CODE, "unknown"), events)
    try:
        configuration = KatibSpace.from_json(settings).decode(values)
    except ExperimentError as error:
        print(f"trial {katib_trial} has no configuration: {error}", file=sys.stderr)
        return EXIT_CODES["failed"]
    trial_id = layout.trial_id(katib_trial)
    report = FileReport(metrics_file, context.metric, settings[layout.STOPS].get(configuration_digest(configuration)))
    outcome = run_trial(context, trial_id, configuration, report, framework_id=katib_trial, role=POD)
    if outcome.state == "completed":
        in_pod.pass_checkpoint_out(context, trial_id, output, settings[layout.CHECKPOINT_BYTES])
        sidecar.wait_for_collector(katib_trial)
    return EXIT_CODES[outcome.state]


def parameters(arguments: Sequence[str]) -> Mapping[str, str]:
    """Return the texts that Katib put in place of its parameters, from `NAME=VALUE` words."""
    return {name: value for name, _, value in (word.partition("=") for word in arguments)}


if __name__ == "__main__":
    end_with(main)
