"""Optuna: the same script started twice, over one journal file; the objective returns its value.

Source: tutorials "Easy Parallelization" (optuna.readthedocs.io, 10_key_features/004_distributed: create the study, then run the
same script in each process; `n_trials` is of each process) and "(File-based) Journal Storage" (20_recipes/011_journal_storage).
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.speed.bare.documented.digits import WORKERS, end_at_once, tell, train, trainings

STUDY = "distributed-example"


def main(path: str, folder: str, is_worker: bool, is_changed: bool) -> None:
    started = time.monotonic()
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    todo = trainings(path)
    from benchmarks.speed.bare.optuna_bare import FlockLock

    journal = f"{folder}/journal.log"
    storage = JournalStorage(JournalFileBackend(journal, lock_obj=FlockLock(journal) if is_changed else None))
    if is_worker:
        if is_changed:
            end_at_once()

        def objective(trial: optuna.Trial) -> float:
            return train(todo[trial.suggest_int("index", 0, len(todo) - 1)])

        optuna.load_study(study_name=STUDY, storage=storage).optimize(objective, n_trials=len(todo) // WORKERS)
        return
    study = optuna.create_study(study_name=STUDY, storage=storage, direction="maximize")
    for index in range(len(todo)):
        study.enqueue_trial({"index": index})
    module = "benchmarks.speed.bare.documented.optuna_script"
    command = [sys.executable, "-m", module, path, folder, "worker", *(["changed"] if is_changed else [])]
    for process in [subprocess.Popen(command) for _ in range(WORKERS)]:
        if process.wait():
            sys.exit("a process of the script failed")
    tell(started, [trial.value for trial in study.trials if trial.value is not None])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], "worker" in sys.argv, "changed" in sys.argv)
