"""What the programs of pods share. It is imported anew for each trial, so it imports little."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from tuneoff.base.code_digest import code_digest
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events.stream import framed
from tuneoff.record.events.writer import EventWriter
from tuneoff.run.trial.checkpoint import checkpoint_path
from tuneoff_adapters.kubernetes import layout


def config_dir() -> Path:
    """Return where the config map is mounted."""
    return Path(os.environ.get(layout.CONFIG_DIR_VARIABLE, layout.CONFIG_DIR))


def own_context() -> TrialContext:
    """Return the trial's context with the pod's own folder, written there as `run_trial` reads it."""
    context = TrialContext.read(config_dir() / layout.CONTEXT_KEY)
    run_dir = Path(os.environ.get(layout.RUN_DIR_VARIABLE, context.run_dir))
    run_dir.mkdir(parents=True, exist_ok=True)
    context = replace(context, run_dir=str(run_dir))
    context.write()
    return context


def compare_code(expected: str | None, events: EventWriter) -> None:
    """Flag a tuneoff in this image that is not the one that submitted the pod; `expected`: the latter's `code_digest`."""
    if expected is not None and (digest := code_digest()) != expected:
        text = f"the image has tuneoff {digest[:12]}, but the run is one of {expected[:12]}; build it anew (make image)"
        events.flag(layout.OTHER_CODE, text)


def pass_checkpoint_out(context: TrialContext, trial_id: str, output: int, most_bytes: int) -> None:
    """Write the lines of a trial's checkpoint, if its workload keeps one, to a descriptor of standard output."""
    from tuneoff_adapters.kubernetes.checkpoint_lines import encode

    try:
        content = checkpoint_path(context.run_dir, trial_id).read_bytes()
    except FileNotFoundError:
        return  # a workload without state
    with open(output, "wb", closefd=False) as log:
        log.writelines(framed(line, context.execution_id) for line in encode(content, most_bytes))
