"""How the plan of a study follows from a run: in the coordinator, which sends it to the workers."""

from __future__ import annotations

from pathlib import Path

from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.translation import ListTranslation, translation_of
from tuneoff.record.history import NO_HISTORY, History
from tuneoff_adapters.kubernetes.options import is_in_pods
from tuneoff_adapters.optuna.plan import JOURNAL, Storage, StudyPlan
from tuneoff_adapters.slurm import SLURM


def study_plan(
    spec: RunSpec,
    folder: Path,
    history: History = NO_HISTORY,
    storage: Storage = JOURNAL,
    study_name: str | None = None,
) -> StudyPlan:
    """Return the plan of a run whose framework files lie in `folder`, and which continues with `history`.

    `study_name`: in a storage that others use too; None: it has its own.
    """
    experiment = spec.experiment
    translation = translation_of(spec)
    return StudyPlan(
        folder=str(folder.resolve()),
        # Hyperband hashes it: the same run has the same brackets
        study_name=study_name or f"tuneoff-{spec.sampler_seed}",
        storage=storage,
        is_in_pods=is_in_pods(spec),
        is_on_hosts=spec.platform == SLURM,
        mode=experiment.objective.mode,
        metric=experiment.objective.metric,
        epochs=experiment.budget.epochs_per_trial,
        trials=experiment.budget.trials - len(history.finished),
        translation=translation,
        listed=isinstance(translation, ListTranslation),
        sampler=experiment.sampler,
        pruner=experiment.pruner,
        stops=dict(experiment.stops) if experiment.pruner.name == "scripted" else {},
        seed=spec.sampler_seed,
        continued=(len(history.executions), history.count),
        first_number=history.next_number - history.count,
    )
