"""What is mended after a worker died, for each moment at which it can die."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from optuna.pruners import NopPruner
from optuna.study import Study
from optuna.trial import Trial, TrialState

from builders.specs import make_context, toy_spec
from tuneoff.base.space import SearchSpace, stepped
from tuneoff.experiment.spec import RunSpec
from tuneoff.experiment.strategies import sample_distinct
from tuneoff.experiment.translation import given_values
from tuneoff.platform import Death
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import WorkerDied
from tuneoff.record.events.writer import EventWriter
from tuneoff_adapters.optuna.adapter import OptunaAdapter
from tuneoff_adapters.optuna.options import study_plan
from tuneoff_adapters.optuna.plan import JOURNAL, Storage, StudyPlan
from tuneoff_adapters.optuna.search import distributions, make_sampler
from tuneoff_adapters.optuna.study import Operations, best_of, create_study, open_study, quieten
from tuneoff_adapters.optuna.worker_recovery import WorkerRecovery
from tuneoff_adapters.optuna.worker_state import WorkerStage, WorkerState, WorkerStateFile

KILLED = Death(worker=0, pid=4711, exit_code=-9)
HEARTBEAT = Storage(kind="sqlite", heartbeat_seconds=30)
POINTS = SearchSpace({"depth": stepped(1, 6, 1, integer=True)})


class Scene:
    """A study, the worker 0 that will die, and the coordinator's recovery."""

    def __init__(self, spec: RunSpec, folder: Path, storage: Storage = JOURNAL) -> None:
        quieten()
        self.context = make_context(spec, folder)
        self.plan: StudyPlan = study_plan(spec, self.context.work_dir, storage=storage)
        self.study: Study = create_study(self.plan, given_values(spec))
        self.recovery = WorkerRecovery(self.context, self.plan, self.study)
        self.worker = open_study(self.plan, make_sampler(self.plan, 0), NopPruner(), Operations())
        self.state_file = WorkerStateFile(self.plan.state_path(0))

    def begin(self) -> Trial:
        return self.worker.ask(distributions(self.plan.translation.native))

    def ask(self) -> int:
        return self.begin().number

    def dies(self, stage: WorkerStage, death: Death = KILLED, **noted: Any) -> int:
        """Let the worker die after a note, and return how many asks must be repeated."""
        self.state_file.write(WorkerState(stage=stage, **noted))
        return self.recovery.recover(death)

    def deaths(self) -> list[tuple[str | None, int]]:
        events = [event for _, event in EventLog(self.context.run_dir / "events")]
        return [(event.trial, event.attempt) for event in events if isinstance(event, WorkerDied)]

    def states(self) -> list[TrialState]:
        return [trial.state for trial in self.study.get_trials(deepcopy=False)]


def listed_spec(trials: int, retries: int = 0) -> RunSpec:
    given = sample_distinct(POINTS, trials, 0)
    return toy_spec("optuna", space=POINTS, sampler="fixed", configurations=given, trials=trials, retries=retries)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(toy_spec("optuna", trials=3, retries=1), tmp_path)


def test_a_note_that_was_never_written_says_idle(tmp_path: Path) -> None:
    state_file = WorkerStateFile(tmp_path / "state_file")
    assert state_file.read() == WorkerState()
    written = WorkerState(stage=WorkerStage.COMPLETED, number=12, trial=7, attempt=2, submitted=9, value=0.1 + 0.2)
    state_file.write(written)
    assert WorkerStateFile(tmp_path / "state_file").read() == written


def test_the_process_in_a_dead_worker_s_place_draws_otherwise(scene: Scene) -> None:
    adapter: Any = OptunaAdapter(scene.context)
    adapter._plan, adapter._recovery, adapter._generations, adapter._budget_over = scene.plan, scene.recovery, [0], False
    scene.state_file.write(WorkerState(stage=WorkerStage.RUNNING, number=scene.ask(), trial=0, submitted=1))
    order = adapter._bury(KILLED, None)
    assert order.repeats == 1
    assert scene.plan.sampler_seed(0, order.generation) != scene.plan.sampler_seed(0, 0)


def test_a_running_trial_fails_and_is_tried_again_under_its_own_name(scene: Scene) -> None:
    assert scene.dies(WorkerStage.RUNNING, number=scene.ask(), trial=0, submitted=1) == 1
    assert scene.deaths() == [("t00000", 1)]
    assert scene.states() == [TrialState.FAIL, TrialState.WAITING]
    again = scene.begin()
    assert again.params == scene.study.get_trials()[0].params
    assert again.user_attrs == {"tuneoff_trial": 0, "tuneoff_attempt": 2}
    scene.worker.tell(again, 0.5)
    best = best_of(scene.study, scene.plan)
    assert best is not None
    assert (best.trial_id, best.value) == ("t00000", 0.5)
    assert best.configuration == scene.plan.translation.decode(again.params)


def test_the_death_of_a_successor_that_never_began_repeats_nothing(scene: Scene) -> None:
    assert scene.dies(WorkerStage.RUNNING, number=scene.ask(), trial=0, submitted=1) == 1
    assert [scene.recovery.recover(KILLED) for _ in range(2)] == [0, 0]
    assert scene.states() == [TrialState.FAIL, TrialState.WAITING]
    assert (scene.deaths(), scene.recovery.fruitless_deaths) == ([("t00000", 1), (None, 1), (None, 1)], 2)


@pytest.mark.parametrize(
    ("stage", "noted", "exit_code", "deaths", "ended"),
    [
        (WorkerStage.RUNNING, {"attempt": 2}, -9, [("t00000", 2)], (TrialState.FAIL, None)),  # its last attempt
        (WorkerStage.RUNNING, {}, 7, [("t00000", 1)], (TrialState.FAIL, None)),  # an exit code is the workload's fault
        # the others have their own end
        (WorkerStage.COMPLETED, {"value": 0.25}, -9, [(None, 1)], (TrialState.COMPLETE, 0.25)),
        (WorkerStage.PRUNED, {}, -9, [(None, 1)], (TrialState.PRUNED, None)),
        (WorkerStage.FAILED, {}, -9, [(None, 1)], (TrialState.FAIL, None)),
    ],
)
def test_a_trial_that_is_not_tried_again_is_told_as_it_ended(
    scene: Scene,
    stage: WorkerStage,
    noted: dict[str, Any],
    exit_code: int,
    deaths: list[tuple[str | None, int]],
    ended: tuple[TrialState, float | None],
) -> None:
    death = Death(worker=0, pid=4711, exit_code=exit_code)
    assert scene.dies(stage, death, number=scene.ask(), submitted=1, **noted) == 0
    assert scene.deaths() == deaths
    assert [(trial.state, trial.value) for trial in scene.study.get_trials()] == [ended]


def test_a_trial_that_was_already_told_keeps_its_state(scene: Scene) -> None:
    number = scene.ask()
    scene.worker.tell(number, 0.75)
    assert scene.dies(WorkerStage.COMPLETED, number=number, submitted=1, value=0.75) == 0
    assert scene.study.get_trials()[0].value == 0.75


def test_an_ask_that_was_lost_with_its_worker_is_made_again(scene: Scene) -> None:
    scene.ask()  # as far as the study knows
    assert scene.dies(WorkerStage.ASKING, submitted=2) == 0
    assert scene.states() == [TrialState.RUNNING]  # whose it is cannot be told while others ask
    assert scene.recovery.settle() == 1  # of 3 trials, 2 were begun
    assert scene.states() == [TrialState.FAIL]


@pytest.mark.parametrize("stage", [WorkerStage.ASKING, WorkerStage.SUBMITTING])
def test_a_retry_that_was_never_submitted_is_made_again_and_not_counted(scene: Scene, stage: WorkerStage) -> None:
    assert scene.dies(WorkerStage.RUNNING, number=scene.ask(), submitted=3) == 1
    assert scene.dies(stage, number=scene.ask(), trial=0, attempt=2, submitted=3) == 0
    assert scene.state_file.read().submitted == 3
    assert scene.recovery.settle() == 1
    assert scene.states() == [TrialState.FAIL, TrialState.FAIL, TrialState.WAITING]


def test_a_trial_that_was_counted_but_never_submitted_is_a_lost_ask(scene: Scene) -> None:
    for _ in range(2):
        scene.worker.tell(scene.ask(), 0.0)
    assert scene.dies(WorkerStage.SUBMITTING, number=scene.ask(), trial=2, submitted=3) == 0
    assert scene.deaths() == [(None, 1)]
    assert scene.state_file.read().submitted == 2
    assert scene.recovery.settle() == 1


def test_a_trial_whose_submission_was_written_just_before_the_death_is_running(scene: Scene) -> None:
    events = EventWriter(scene.context.run_dir, scene.context.execution_id, "worker")
    events.submitted("t00000", {}, "0", 1)
    death = Death(worker=0, pid=events.pid, exit_code=-9)
    assert scene.dies(WorkerStage.SUBMITTING, death, number=scene.ask(), trial=0, submitted=1) == 1
    assert scene.deaths() == [("t00000", 1)]
    assert scene.state_file.read().submitted == 1


@pytest.mark.parametrize(
    ("end", "state"), [("completed", TrialState.COMPLETE), ("failed", TrialState.FAIL), ("", TrialState.COMPLETE)]
)
def test_a_trial_whose_end_was_written_just_before_the_death_ended_so(scene: Scene, end: str, state: TrialState) -> None:
    """Of one without an end all epochs were."""
    events = EventWriter(scene.context.run_dir, scene.context.execution_id, "worker")
    events.submitted("t00000", {}, "0", 1)
    metric = scene.context.spec.experiment.objective.metric
    planned = scene.context.spec.experiment.budget.epochs_per_trial
    for epoch, value in enumerate((0.25, *[0.5] * (planned - 1)), 1):
        events.write("epoch", trial="t00000", epoch=epoch, metrics={metric: value}, train_ns=1, validate_ns=1)
    if end:
        events.write("trial_ended", trial="t00000", state=end, epochs=planned)
    death = Death(worker=0, pid=events.pid, exit_code=-9)
    assert scene.dies(WorkerStage.RUNNING, death, number=scene.ask(), trial=0, submitted=1, value=math.nan) == 0
    assert scene.deaths() == [(None, 1)]
    assert [(trial.state, trial.value) for trial in scene.study.get_trials()] == [(state, None if end == "failed" else 0.25)]


def test_a_listed_configuration_that_was_lost_in_an_ask_is_enqueued_again(tmp_path: Path) -> None:
    listed = Scene(listed_spec(3, retries=1), tmp_path)
    listed.ask()
    listed.dies(WorkerStage.ASKING, submitted=0)
    assert listed.recovery.settle() == 3
    found = [listed.begin().params for _ in range(3)]
    assert sorted(params["configuration_index"] for params in found) == [0, 1, 2]


def test_a_retry_that_is_left_to_the_heartbeat_is_not_made_again(tmp_path: Path) -> None:
    scene = Scene(toy_spec("optuna", trials=1, retries=1), tmp_path, HEARTBEAT)
    assert scene.dies(WorkerStage.RUNNING, number=scene.ask(), submitted=1) == 1
    assert scene.dies(WorkerStage.RUNNING, number=scene.ask(), attempt=2, submitted=1) == 0
    assert scene.recovery.settle() == 0
    assert scene.states() == [TrialState.FAIL, TrialState.FAIL]


def test_a_listed_configuration_that_is_left_to_the_heartbeat_is_not_enqueued_again(tmp_path: Path) -> None:
    scene = Scene(listed_spec(2), tmp_path, HEARTBEAT)
    assert scene.dies(WorkerStage.RUNNING, number=scene.ask(), submitted=1) == 0
    scene.ask()  # with the worker that died there
    scene.dies(WorkerStage.ASKING, submitted=1)
    assert scene.recovery.settle() == 1
    assert scene.states() == [TrialState.FAIL, TrialState.FAIL, TrialState.WAITING]
    again = scene.begin()
    assert again.params == scene.study.get_trials()[1].params


def test_deaths_without_a_trial_are_counted_in_a_row(scene: Scene) -> None:
    for expected in (1, 2, 3):
        scene.dies(WorkerStage.ASKING)
        assert scene.recovery.fruitless_deaths == expected
    scene.dies(WorkerStage.RUNNING, number=scene.ask(), submitted=1)
    assert scene.recovery.fruitless_deaths == 0
    scene.dies(WorkerStage.ASKING, submitted=1)
    assert scene.recovery.fruitless_deaths == 1


def test_no_completed_trial_means_no_best(scene: Scene) -> None:
    scene.worker.tell(scene.ask(), state=TrialState.FAIL)
    assert best_of(scene.study, scene.plan) is None
