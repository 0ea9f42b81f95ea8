"""What the coordinator and its workers agree on. Plain data: imports no framework, travels to the workers once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuneoff.base.identity import derive_seed, trial_name
from tuneoff.experiment.spec import RunSpec, Strategy
from tuneoff.experiment.translation import ListTranslation, Translation, translation_of
from tuneoff.record.history import History
from tuneoff.workload import Mode
from tuneoff_adapters.kubernetes.options import is_in_pods
from tuneoff_adapters.optuna.options import JOURNAL, Storage
from tuneoff_adapters.slurm import SLURM

NO_HISTORY = History()
RETRY_OF, RETRY_ATTEMPT = "tuneoff_trial", "tuneoff_attempt"  # user attributes, of retries and of what was begun before only


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPlan:
    """One study: where it is stored, what it optimizes, with which sampler and pruner."""

    folder: str  # absolute; holds the journal or SQLite's file, and this adapter's own small files
    study_name: str
    mode: Mode
    metric: str
    epochs: int
    trials: int  # to be asked for: of a continued run those that are not finished
    translation: Translation
    listed: bool  # the configurations are given (fixed, grid): enqueued, never sampled
    sampler: Strategy
    pruner: Strategy
    stops: Mapping[str, int]  # configuration digest -> last epoch, for `scripted`
    seed: int
    continued: tuple[int, int] = (0, 0)  # how many executions were before, and how many trials they began
    storage: Storage = JOURNAL
    is_in_pods: bool = False  # the workers run in pods: then the coordinator counts the asks
    is_on_hosts: bool = False  # they run on several hosts, and have this folder there
    first_number: int = 0  # what to add to Optuna's number of a new trial to have tuneoff's: 0, or a trial's event was lost

    @property
    def journal(self) -> str:
        return f"{self.folder}/journal.log"

    @property
    def database(self) -> str:
        """The file of SQLite."""
        return f"{self.folder}/study.db"

    @property
    def asks(self) -> str:
        """The file that counts the asks of all workers."""
        return f"{self.folder}/asks"

    def note(self, worker: int) -> str:
        """Return the file in which a worker says what it is doing."""
        return f"{self.folder}/worker-{worker}"

    def sampler_seed(self, worker: int, generation: int) -> int:
        """Return the seed of a worker's own sampler; a worker started again draws other configurations than before.

        So does every worker of a continued run.
        """
        if self.continued != (0, 0):
            return derive_seed("optuna", self.seed, worker, generation, "continued", *self.continued)
        return derive_seed("optuna", self.seed, worker, generation)

    def trial_id(self, number: int, attributes: Mapping[str, Any]) -> str:
        """Return tuneoff's name of Optuna's trial, by its user attributes."""
        return trial_name(attributes.get(RETRY_OF, number + self.first_number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Coordinator to worker: make `repeats` asks that need no ticket, then ask for as long as there are tickets."""

    generation: int
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Worker to coordinator: the order is carried out. `budget_over`: core refused or cancelled a trial, so ask no more."""

    budget_over: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Worker to coordinator: Optuna (or its storage) raised."""

    text: str
    is_infrastructure: bool = False  # the machine is to blame, not Optuna


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
