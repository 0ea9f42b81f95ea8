"""A plain program of Syne Tune, as its documentation has it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tuneoff_faults.plain import Claim, PlainTask, State

NAME = "faults"


def main(folder: str) -> None:
    os.environ["SYNETUNE_FOLDER"] = folder
    from syne_tune import StoppingCriterion, Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import choice
    from syne_tune.optimizer.baselines import RandomSearch

    task = PlainTask.read(folder)
    indices = list(range(len(task.configurations)))
    path = f"{folder}/{NAME}"
    if task.is_again and Path(path, "tuner.dill").exists():
        tuner = Tuner.load(path)
    else:
        scheduler = RandomSearch(
            {"index": choice(indices), "folder": folder},
            metrics=[task.metric],
            do_minimize=task.mode == "min",
            points_to_evaluate=[{"index": index} for index in indices],
        )
        tuner = Tuner(  # it stops once *more* trials have finished than its criterion says, and draws the same ones again
            trial_backend=LocalBackend(entry_point=str(Path(__file__).with_name("plain_syne_tune_trial.py"))),
            scheduler=scheduler,
            stop_criterion=StoppingCriterion(max_num_trials_finished=len(indices) - 1),
            n_workers=task.workers,
            tuner_name=NAME,
            suffix_tuner_name=False,
        )
    tuner.run()
    status = tuner.tuning_status
    claims = []
    for number, text in status.last_trial_status_seen.items():
        state: State = "completed" if text == "Completed" else "failed" if text == "Failed" else "unfinished"
        statistics = status.trial_metric_statistics.get(number)
        metrics = None if statistics is None else (statistics.max_metrics if task.mode == "max" else statistics.min_metrics)
        index = tuner.trial_backend._trial_dict[number].config["index"]
        claims.append(Claim(index=index, state=state, value=None if metrics is None else metrics.get(task.metric), text=text))
    _, best = tuner.best_config()
    value = next((claim.value for claim in claims if claim.index == best["index"]), None)
    task.answer(claims, (best["index"], value))


if __name__ == "__main__":
    main(sys.argv[1])
