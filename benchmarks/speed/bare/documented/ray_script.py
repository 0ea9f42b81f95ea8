"""Ray Tune: a function that returns its final value, in a Tuner with two CPUs.

Source: docs.ray.io, "Ray Tune: Hyperparameter Tuning" (the objective of its first example returns {"score": ...}) and "Training
in Tune" ("report only a single time at the end", or return it). Set besides: what keeps Ray on this machine, and quiet.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from typing import Any

from benchmarks.speed.bare.documented.digits import WORKERS, tell, train, trainings
from benchmarks.speed.bare.ray_bare import SETTINGS

SAFE = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def objective(config: dict[str, Any]) -> dict[str, float]:
    return {"accuracy": train(config["training"])}


def main(path: str, folder: str, is_changed: bool) -> None:
    started = time.monotonic()
    os.environ.update({**SETTINGS, **SAFE} if is_changed else SAFE)
    os.environ.pop("RAY_ADDRESS", None)
    import ray
    from ray import tune

    quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"} if is_changed else {}
    ray.init(num_cpus=WORKERS, **quiet, _temp_dir=f"{tempfile.gettempdir()}/ray")
    limit = WORKERS if is_changed else None
    tuner = tune.Tuner(
        objective,
        param_space={"training": tune.grid_search(trainings(path))},
        tune_config=tune.TuneConfig(metric="accuracy", mode="max", reuse_actors=is_changed, max_concurrent_trials=limit),
        run_config=tune.RunConfig(storage_path=folder, **({"verbose": 0} if is_changed else {})),
    )
    values = [result.metrics["accuracy"] for result in tuner.fit()]
    ray.shutdown()
    tell(started, values)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "changed" in sys.argv)
