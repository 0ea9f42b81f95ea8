"""A plain program of Ray Tune, as its user guide has it."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from typing import Any

from tuneoff_faults.plain import Claim, PlainTask, State

NAME = "faults"
SAFE = {  # nothing beyond this machine and this folder; no setting on how failures are met
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def train(config: dict[str, Any]) -> None:
    from ray import tune

    task = PlainTask.read(config["folder"])
    for epoch, metrics in task.train(config["index"]):
        tune.report({**metrics, "epoch": epoch})


def main(folder: str) -> None:
    os.environ.update(SAFE)
    os.environ.pop("RAY_ADDRESS", None)
    import ray
    from ray import tune

    task = PlainTask.read(folder)
    ray.init(num_cpus=task.workers, _temp_dir=f"{tempfile.gettempdir()}/ray{int(task.is_again)}")
    path = f"{folder}/{NAME}"
    if task.is_again and tune.Tuner.can_restore(path):
        tuner = tune.Tuner.restore(path, trainable=train)
    else:
        tuner = tune.Tuner(
            train,
            param_space={"index": tune.grid_search(list(range(len(task.configurations)))), "folder": folder},
            tune_config=tune.TuneConfig(metric=task.metric, mode=task.mode),
            run_config=tune.RunConfig(name=NAME, storage_path=folder),
        )
    results = tuner.fit()
    claims = []
    for number in range(len(results)):
        result = results[number]
        state: State = "completed" if result.error is None else "failed"
        if result.error is None and not result.metrics.get("done"):
            state = "unfinished"
        text = "TERMINATED without an error" if result.error is None else f"ERROR: {_last_line(result.error)}"
        value = result.metrics.get(task.metric)
        claims.append(Claim(index=result.config["index"], state=state, value=value, text=f"{text}, last value {value}"))
    best = results.get_best_result()
    task.answer(claims, (best.config["index"], best.metrics.get(task.metric)))
    ray.shutdown()


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:120] if lines else type(error).__name__


if __name__ == "__main__":
    main(sys.argv[1])
