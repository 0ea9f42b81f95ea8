"""How the plan of a study follows from a run: in the coordinator, which sends it to the workers."""

from __future__ import annotations

from pathlib import Path

from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.translation import ListTranslation, translation_of
from tuneoff_adapters.kubernetes.options import is_in_pods
from tuneoff_adapters.optuna.plan import JOURNAL, Storage, StudyPlan
from tuneoff_adapters.slurm import SLURM


def study_plan(spec: RunSpec, folder: Path, storage: Storage = JOURNAL, study_name: str | None = None) -> StudyPlan:
    """Return the plan of a run whose framework files lie in `folder`.

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
        trials=experiment.budget.trials,
        translation=translation,
        listed=isinstance(translation, ListTranslation),
        sampler=experiment.sampler,
        pruner=experiment.pruner,
        stops=dict(experiment.stops) if experiment.pruner.name == "scripted" else {},
        seed=spec.sampler_seed,
    )
