"""Score a trial's own checkpoint on the test split: the same for every adapter, in a fresh process, never a retraining."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.trial.context import TrialContext


def score_to_file(context: TrialContext, trial_id: str, configuration: Mapping[str, Any], output: Path) -> None:
    """Load the checkpoint of `trial_id`, score it on the test split and write the scores as JSON to `output`.

    Raises:
        CheckpointError: the checkpoint is missing or unreadable.
    """
    workload = context.make_workload()
    workload.limit_threads(context.threads)
    workload.load(configuration, context.seeds(configuration))
    sha256, epoch = None, None
    if workload.has_state:
        checkpoint = read_checkpoint(checkpoint_path(context.run_dir, trial_id))
        workload.load_state_dict(checkpoint.tensors, checkpoint.texts)
        sha256, epoch = checkpoint.sha256, checkpoint.epoch
    scores = workload.test()
    result = {
        "trial": trial_id,
        "scores": dict(scores.values),
        "details": dict(scores.details),
        "checkpoint_sha256": sha256,
        "checkpoint_epoch": epoch,
        "device": workload.device(),
    }
    temporary = output.with_suffix(".tmp")
    temporary.write_text(json.dumps(result))
    os.replace(temporary, output)
