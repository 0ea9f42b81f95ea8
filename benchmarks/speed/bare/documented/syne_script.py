"""Syne Tune: a Tuner with LocalBackend and random search; each trial is a script that reports once, at its end.

Source: tutorial "Basics of Syne Tune" (launch_randomsearch.py, traincode_report_end.py). Set besides: exactly the asked trials
(its stop criteria overshoot), and the folder of its files.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.speed.bare.documented.digits import WORKERS, tell, trainings
from benchmarks.speed.bare.syne_bare import POLL_SECONDS, Quiet


def main(path: str, folder: str, is_changed: bool) -> None:
    started = time.monotonic()
    os.environ["SYNETUNE_FOLDER"] = folder
    from syne_tune import StoppingCriterion, Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import choice
    from syne_tune.optimizer.baselines import RandomSearch

    indices = list(range(len(trainings(path))))

    class Bounded(RandomSearch):  # type: ignore[misc]
        def suggest(self) -> Any:
            return super().suggest() if turns.pop() else None

    changed = {"sleep_time": POLL_SECONDS, "callbacks": [], "save_tuner": False, "output_logger": Quiet()} if is_changed else {}
    turns = [False, *(True for _ in indices)]
    tuner = Tuner(
        trial_backend=LocalBackend(entry_point=str(Path(__file__).with_name("syne_trial.py"))),
        scheduler=Bounded(
            {"index": choice(indices), "trainings": path, "changed": int(is_changed)},
            metrics=["accuracy"],
            do_minimize=False,
            points_to_evaluate=[{"index": index} for index in indices],
        ),
        stop_criterion=StoppingCriterion(max_wallclock_time=600),
        n_workers=WORKERS,
        **changed,
    )
    tuner.run()
    tell(started, [statistic.max_metrics["accuracy"] for statistic in tuner.tuning_status.trial_metric_statistics.values()])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "changed" in sys.argv)
