"""Ray Tune: reused actors, quiet settings, no files per trial.

`python -m benchmarks.speed.bare.ray_bare FOLDER TRIALS SECONDS`
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.bare.objective import K_HIGH, WORKERS, X_HIGH, X_LOW, loss, print_span, stamp, stamps

SETTINGS = {  # before Ray is imported
    "RAY_AUTH_MODE": "token",  # else Ray writes a token into the home folder
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # loopback only
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
    "RAY_worker_niceness": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # no CSV, JSON and TensorBoard files per trial
    "TUNE_GLOBAL_CHECKPOINT_S": "1000000000",  # the state of the experiment is written at the end
    "TUNE_WARN_THRESHOLD_S": "60",
}


def train(config: dict[str, Any]) -> None:
    from ray import tune

    seconds, ends = config["seconds"], config["ends"]
    value = loss({name: config[name] for name in ("x", "y", "k")}, seconds)
    tune.report({"loss": value})
    stamp(ends)


def main(folder: Path, trials: int, seconds: float) -> None:
    os.environ.update(SETTINGS)
    os.environ.pop("RAY_ADDRESS", None)
    import ray
    from ray import tune
    from ray.tune.search.basic_variant import BasicVariantGenerator

    submitted: list[int] = []

    class StampedVariants(BasicVariantGenerator):  # type: ignore[misc]
        def next_trial(self) -> Any:
            trial = super().next_trial()
            if trial is not None and not submitted:
                submitted.append(time.monotonic_ns())
            return trial

    ray.init(
        address="local",
        num_cpus=WORKERS,
        num_gpus=0,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _temp_dir=str(Path(tempfile.gettempdir()) / "ray"),
    )
    ends = str(folder / "ends")
    tuner = tune.Tuner(
        tune.with_resources(train, {"cpu": 1}),
        param_space={
            "x": tune.loguniform(X_LOW, X_HIGH),
            "y": tune.uniform(0.0, 1.0),
            "k": tune.randint(0, K_HIGH + 1),
            "seconds": seconds,
            "ends": ends,
        },
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            search_alg=StampedVariants(max_concurrent=WORKERS, random_state=0),
            num_samples=trials,
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(name="bare", storage_path=str(folder), verbose=0),
    )
    tuner.fit()
    ray.shutdown()
    ended = stamps(ends)
    print_span(submitted[0], max(ended), len(ended), trials)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
