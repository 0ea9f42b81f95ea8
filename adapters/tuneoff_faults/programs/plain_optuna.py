"""A plain program of Optuna, as its tutorial on parallelization has it: one script in several processes."""

from __future__ import annotations

import subprocess
import sys

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import TrialState

from tuneoff_faults.plain import Claim, PlainTask, State

STUDY = "faults"
STATES: dict[TrialState, State] = {TrialState.COMPLETE: "completed", TrialState.FAIL: "failed", TrialState.PRUNED: "failed"}


def storage(task: PlainTask) -> JournalStorage:
    return JournalStorage(JournalFileBackend(f"{task.folder}/journal.log"))


def work(task: PlainTask, trials: int) -> None:
    """Run trials of the study; what the objective raises ends this process, as Optuna has it by default."""

    def objective(trial: optuna.Trial) -> float | None:
        index, value = trial.suggest_int("index", 0, len(task.configurations) - 1), None
        for epoch, metrics in task.train(index):
            value = metrics[task.metric]
            trial.report(value, epoch)
        return value

    optuna.load_study(study_name=STUDY, storage=storage(task)).optimize(objective, n_trials=trials)  # type: ignore[arg-type]


def main(folder: str, trials: int | None) -> None:
    task = PlainTask.read(folder)
    if trials is not None:
        work(task, trials)
        return
    direction = StudyDirection.MAXIMIZE if task.mode == "max" else StudyDirection.MINIMIZE
    study = optuna.create_study(study_name=STUDY, storage=storage(task), direction=direction, load_if_exists=True)
    if not study.trials:
        for index in range(len(task.configurations)):
            study.enqueue_trial({"index": index})
    remaining = len(task.configurations) - len(study.get_trials(states=(TrialState.COMPLETE,)))
    shares = [remaining // task.workers + (worker < remaining % task.workers) for worker in range(task.workers)]
    command = [sys.executable, "-m", __spec__.name, folder]
    processes = [subprocess.Popen([*command, str(share)]) for share in shares if share]
    codes = [process.wait() for process in processes]
    trials_seen = study.get_trials()
    claims = [
        Claim(
            index=trial.params.get("index", trial.system_attrs.get("fixed_params", {}).get("index", -1)),
            state=STATES.get(trial.state, "unfinished"),
            value=trial.value,
            text=f"its state stays {trial.state.name}" if trial.state is TrialState.RUNNING else trial.state.name,
        )
        for trial in trials_seen
    ]
    best = study.best_trial
    task.answer(claims, (best.params["index"], best.value))
    failed = [code for code in codes if code]
    if failed:
        waiting = sum(trial.state is TrialState.WAITING for trial in trials_seen)
        sys.exit(f"{len(failed)} of {len(codes)} processes ended with exit code {failed[0]}; trials never started: {waiting}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)
