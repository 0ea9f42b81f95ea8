"""What is mended after a worker died, for each moment at which it can die."""

from __future__ import annotations

from pathlib import Path

import pytest
from optuna.pruners import NopPruner
from optuna.study import Study
from optuna.trial import TrialState

from builders.specs import toy_spec
from tuneoff.base.space import SearchSpace, stepped
from tuneoff.experiment.sampling import sample_distinct
from tuneoff.experiment.spec import RunSpec
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import WorkerDied
from tuneoff.record.events.writer import EventWriter
from tuneoff.record.run_context import RunContext
from tuneoff.run.supervisor.prepare import new_execution, write_inputs
from tuneoff.run.trial.pool import Death
from tuneoff_adapters.optuna.distributions import distributions
from tuneoff_adapters.optuna.mending import Mender
from tuneoff_adapters.optuna.note import Note, NoteFile, Stage
from tuneoff_adapters.optuna.options import JOURNAL, Storage
from tuneoff_adapters.optuna.plan import StudyPlan, study_plan
from tuneoff_adapters.optuna.samplers import make_sampler
from tuneoff_adapters.optuna.storages import Operations
from tuneoff_adapters.optuna.study import best_of, create_study, open_study, quieten

KILLED = Death(worker=0, pid=4711, exit_code=-9)
POINTS = SearchSpace({"depth": stepped(1, 6, 1, integer=True)})


class Scene:
    """A study, the worker 0 that will die, and the coordinator's mender."""

    def __init__(self, spec: RunSpec, folder: Path, storage: Storage = JOURNAL) -> None:
        execution = new_execution(spec, folder)
        trial_context = write_inputs(execution)
        self.context = RunContext(
            spec=spec,
            run_dir=execution.folder,
            execution_id=execution.execution_id,
            trial_context=trial_context,
            events=EventWriter(execution.folder, execution.execution_id, "coordinator"),
        )
        self.plan: StudyPlan = study_plan(spec, self.context.work_dir, storage=storage)
        self.study: Study = create_study(self.plan)
        self.mender = Mender(self.context, self.plan, self.study)
        self.worker = open_study(self.plan, make_sampler(self.plan, 0), NopPruner(), Operations())
        self.note = NoteFile(self.plan.note(0))

    def ask(self) -> int:
        return self.worker.ask(distributions(self.plan.translation.native)).number

    def deaths(self) -> list[tuple[str | None, int]]:
        events = [event for _, event in EventLog(self.context.run_dir / "events")]
        return [(event.trial, event.attempt) for event in events if isinstance(event, WorkerDied)]

    def states(self) -> list[TrialState]:
        return [trial.state for trial in self.study.get_trials(deepcopy=False)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    quieten()
    return Scene(toy_spec("optuna", trials=3, retries=1), tmp_path)


HEARTBEAT = Storage(kind="sqlite", heartbeat_seconds=30)


@pytest.fixture
def listed(tmp_path: Path) -> Scene:
    quieten()
    given = sample_distinct(POINTS, 3, 0)
    return Scene(toy_spec("optuna", space=POINTS, sampler="fixed", configurations=given, trials=3, retries=1), tmp_path)


def test_a_note_that_was_never_written_says_idle(tmp_path: Path) -> None:
    note = NoteFile(tmp_path / "note")
    assert note.read() == Note()
    written = Note(stage=Stage.COMPLETED, number=12, trial=7, attempt=2, submitted=9, value=0.1 + 0.2)
    note.write(written)
    assert NoteFile(tmp_path / "note").read() == written


def test_a_running_trial_fails_and_is_tried_again_under_its_own_name(scene: Scene) -> None:
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), trial=0, submitted=1))
    assert scene.mender.mend(KILLED) == 1
    assert scene.deaths() == [("t00000", 1)]
    assert scene.states() == [TrialState.FAIL, TrialState.WAITING]
    again = scene.worker.ask(distributions(scene.plan.translation.native))
    assert again.params == scene.study.get_trials()[0].params
    assert again.user_attrs == {"tuneoff_trial": 0, "tuneoff_attempt": 2}
    scene.worker.tell(again, 0.5)
    best = best_of(scene.study, scene.plan)
    assert best is not None
    assert (best.trial_id, best.value) == ("t00000", 0.5)
    assert best.configuration == scene.plan.translation.decode(again.params)


def test_the_last_attempt_is_not_tried_again(scene: Scene) -> None:
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), trial=0, attempt=2, submitted=1))
    assert scene.mender.mend(KILLED) == 0
    assert scene.states() == [TrialState.FAIL]


def test_the_death_of_a_successor_that_never_began_repeats_nothing(scene: Scene) -> None:
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), trial=0, submitted=1))
    assert [scene.mender.mend(KILLED) for _ in range(3)] == [1, 0, 0]
    assert scene.states() == [TrialState.FAIL, TrialState.WAITING]
    assert (scene.deaths(), scene.mender.fruitless_deaths) == ([("t00000", 1), (None, 1), (None, 1)], 2)


def test_an_exit_code_is_the_workloads_fault_and_not_tried_again(scene: Scene) -> None:
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), submitted=1))
    assert scene.mender.mend(Death(worker=0, pid=1, exit_code=7)) == 0


@pytest.mark.parametrize(
    ("stage", "state", "value"),
    [
        (Stage.COMPLETED, TrialState.COMPLETE, 0.25),
        (Stage.PRUNED, TrialState.PRUNED, None),
        (Stage.FAILED, TrialState.FAIL, None),
    ],
)
def test_a_trial_that_ended_before_its_worker_died_is_told_as_it_ended(
    scene: Scene, stage: Stage, state: TrialState, value: float | None
) -> None:
    scene.note.write(Note(stage=stage, number=scene.ask(), submitted=1, value=value or 0.0))
    assert scene.mender.mend(KILLED) == 0
    assert scene.deaths() == [(None, 1)]  # the trial has its own end
    (trial,) = scene.study.get_trials()
    assert (trial.state, trial.value) == (state, value)


def test_a_trial_that_was_already_told_keeps_its_state(scene: Scene) -> None:
    number = scene.ask()
    scene.worker.tell(number, 0.75)
    scene.note.write(Note(stage=Stage.COMPLETED, number=number, submitted=1, value=0.75))
    assert scene.mender.mend(KILLED) == 0
    assert scene.study.get_trials()[0].value == 0.75


def test_an_ask_that_was_lost_with_its_worker_is_made_again(scene: Scene) -> None:
    scene.ask()  # as far as the study knows
    scene.note.write(Note(stage=Stage.ASKING, submitted=2))
    assert scene.mender.mend(KILLED) == 0
    assert scene.states() == [TrialState.RUNNING]  # whose it is cannot be told while others ask
    assert scene.mender.settle() == 1  # of 3 trials, 2 were begun
    assert scene.states() == [TrialState.FAIL]


def test_a_trial_that_was_counted_but_never_submitted_is_a_lost_ask(scene: Scene) -> None:
    for _ in range(2):
        scene.worker.tell(scene.ask(), 0.0)
    scene.note.write(Note(stage=Stage.SUBMITTING, number=scene.ask(), trial=2, submitted=3))
    assert scene.mender.mend(KILLED) == 0
    assert scene.deaths() == [(None, 1)]
    assert scene.note.read().submitted == 2
    assert scene.mender.settle() == 1


def test_a_retry_that_was_never_submitted_is_made_again_and_not_counted(scene: Scene) -> None:
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), submitted=3))
    assert scene.mender.mend(KILLED) == 1
    scene.note.write(Note(stage=Stage.SUBMITTING, number=scene.ask(), trial=0, attempt=2, submitted=3))
    assert scene.mender.mend(KILLED) == 0
    assert scene.note.read().submitted == 3
    assert scene.mender.settle() == 1


def test_a_trial_whose_submission_was_written_just_before_the_death_is_running(scene: Scene) -> None:
    events = EventWriter(scene.context.run_dir, scene.context.execution_id, "worker")
    events.submitted("t00000", {}, "0", 1)
    scene.note.write(Note(stage=Stage.SUBMITTING, number=scene.ask(), trial=0, submitted=1))
    assert scene.mender.mend(Death(worker=0, pid=events.pid, exit_code=-9)) == 1
    assert scene.deaths() == [("t00000", 1)]
    assert scene.note.read().submitted == 1


def test_a_listed_configuration_that_was_lost_in_an_ask_is_enqueued_again(listed: Scene) -> None:
    listed.ask()
    listed.note.write(Note(stage=Stage.ASKING, submitted=0))
    listed.mender.mend(KILLED)
    assert listed.mender.settle() == 3
    found = [listed.worker.ask(distributions(listed.plan.translation.native)).params for _ in range(3)]
    assert sorted(params["configuration_index"] for params in found) == [0, 1, 2]


def test_a_retry_that_was_lost_in_an_ask_is_made_again(scene: Scene) -> None:
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), submitted=3))
    assert scene.mender.mend(KILLED) == 1
    assert scene.ask() == 1  # the retry
    scene.note.write(Note(stage=Stage.ASKING, submitted=3))
    assert scene.mender.mend(KILLED) == 0
    assert scene.mender.settle() == 1
    assert scene.states() == [TrialState.FAIL, TrialState.FAIL, TrialState.WAITING]


def test_a_retry_that_is_left_to_the_heartbeat_is_not_made_again(tmp_path: Path) -> None:
    quieten()
    scene = Scene(toy_spec("optuna", trials=1, retries=1), tmp_path, HEARTBEAT)
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), submitted=1))
    assert scene.mender.mend(KILLED) == 1
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), attempt=2, submitted=1))
    assert scene.mender.mend(KILLED) == 0
    assert scene.mender.settle() == 0
    assert scene.states() == [TrialState.FAIL, TrialState.FAIL]


def test_a_listed_configuration_that_is_left_to_the_heartbeat_is_not_enqueued_again(tmp_path: Path) -> None:
    quieten()
    given = sample_distinct(POINTS, 2, 0)
    spec = toy_spec("optuna", space=POINTS, sampler="fixed", configurations=given, trials=2)
    scene = Scene(spec, tmp_path, HEARTBEAT)
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), submitted=1))
    assert scene.mender.mend(KILLED) == 0
    scene.ask()  # with the worker that died there
    scene.note.write(Note(stage=Stage.ASKING, submitted=1))
    scene.mender.mend(KILLED)
    assert scene.mender.settle() == 1
    assert scene.states() == [TrialState.FAIL, TrialState.FAIL, TrialState.WAITING]
    again = scene.worker.ask(distributions(scene.plan.translation.native))
    assert again.params == scene.study.get_trials()[1].params


def test_nothing_is_repeated_where_nothing_was_lost(scene: Scene) -> None:
    for _ in range(3):
        scene.worker.tell(scene.ask(), 0.0)
    scene.note.write(Note(stage=Stage.IDLE, submitted=3))
    assert scene.mender.settle() == 0


def test_deaths_without_a_trial_are_counted_in_a_row(scene: Scene) -> None:
    for expected in (1, 2, 3):
        scene.note.write(Note(stage=Stage.ASKING))
        scene.mender.mend(KILLED)
        assert scene.mender.fruitless_deaths == expected
    scene.note.write(Note(stage=Stage.RUNNING, number=scene.ask(), submitted=1))
    scene.mender.mend(KILLED)
    assert scene.mender.fruitless_deaths == 0
    scene.note.write(Note(stage=Stage.ASKING, submitted=1))
    scene.mender.mend(KILLED)
    assert scene.mender.fruitless_deaths == 1


def test_no_completed_trial_means_no_best(scene: Scene) -> None:
    scene.worker.tell(scene.ask(), state=TrialState.FAIL)
    assert best_of(scene.study, scene.plan) is None
