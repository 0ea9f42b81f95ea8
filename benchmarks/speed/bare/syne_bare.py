"""Syne Tune: LocalBackend, polled every 0.05 s, exactly the asked trials.

`python -m benchmarks.speed.bare.syne_bare FOLDER TRIALS SECONDS [printed]`; with `printed` the trials print their report
themselves instead of importing Syne Tune's Reporter.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.bare.objective import K_HIGH, WORKERS, X_HIGH, X_LOW, print_span, stamps

POLL_SECONDS = 0.05


class Quiet:
    """Stands in for Syne Tune's coloured output."""

    def __getattr__(self, name: str) -> Any:
        return lambda *values, **named: None


def main(folder: Path, trials: int, seconds: float, script: str) -> None:
    os.environ["SYNETUNE_FOLDER"] = str(folder)
    from syne_tune import Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import loguniform, randint, uniform
    from syne_tune.optimizer.baselines import RandomSearch

    logging.getLogger().setLevel(logging.ERROR)
    submitted: list[int] = []

    class Bounded(RandomSearch):  # type: ignore[misc]
        """Suggests exactly `trials` configurations: Syne Tune's own stop criteria overshoot."""

        def suggest(self) -> Any:
            if len(submitted) >= trials:
                return None
            suggestion = super().suggest()
            submitted.append(time.monotonic_ns())
            return suggestion

    ends = str(folder / "ends")
    space = {
        "x": loguniform(X_LOW, X_HIGH),
        "y": uniform(0.0, 1.0),
        "k": randint(0, K_HIGH),
        "seconds": seconds,
        "ends": ends,
    }
    tuner = Tuner(
        trial_backend=LocalBackend(entry_point=str(Path(__file__).with_name(script)), rotate_gpus=False),
        scheduler=Bounded(space, metrics=["loss"], do_minimize=True, random_seed=0),
        stop_criterion=lambda status: False,
        n_workers=WORKERS,
        sleep_time=POLL_SECONDS,
        print_update_interval=1e9,
        max_failures=1,
        tuner_name="bare",
        suffix_tuner_name=False,
        save_tuner=False,
        output_logger=Quiet(),
    )
    tuner.run()
    ended = stamps(ends)
    print_span(submitted[0], max(ended), len(ended), trials)


if __name__ == "__main__":
    name = "syne_trial_printed.py" if sys.argv[4:] == ["printed"] else "syne_trial.py"
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), name)
