"""Score a trial's own checkpoint on the test split: the same for every adapter, in a fresh process, never a retraining."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneoff.base.identity import is_finite
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.checkpoint import checkpoint_path, read_checkpoint
from tuneoff.run.trial.usage import process_tree_cpu_ns


def score_to_file(context: TrialContext, trial_id: str, configuration: Mapping[str, Any], output: Path) -> None:
    """Load the checkpoint of `trial_id`, score it on the test split and write the scores as JSON to `output`.

    A score that is no finite number is null there, and its text is in `non_finite`; so is null what is not finite in `details`.
    `cpu_ns` is what this process used since its start.

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
    workload.close()
    finite = {name: score if is_finite(score) else None for name, score in scores.values.items()}
    result = {
        "trial": trial_id,
        "scores": finite,
        "non_finite": {name: str(scores.values[name]) for name, score in finite.items() if score is None},
        "details": _without_non_finite(dict(scores.details)),
        "checkpoint_sha256": sha256,
        "checkpoint_epoch": epoch,
        "device": workload.device(),
        "cpu_ns": process_tree_cpu_ns(),
    }
    temporary = output.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, allow_nan=False))
    os.replace(temporary, output)


def _without_non_finite(value: Any) -> Any:
    """Return the same JSON value with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, Mapping):
        return {key: _without_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_non_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
