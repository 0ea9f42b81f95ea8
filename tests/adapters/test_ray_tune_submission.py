"""What happens in the driver when Ray's searcher hands a trial over, and when a trial ends. Starts no Ray instance."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from adapters.framework_objects import RayTrial
from builders.specs import make_context, toy_spec
from tuneoff.errors import TrialFailedError
from tuneoff.experiment.spec import Budget
from tuneoff.experiment.translation import translation_of
from tuneoff.record.events.reader import EventLog
from tuneoff.record.events.schema import Event, StopDecided, TrialSubmitted, WorkerDied
from tuneoff.record.run_context import RunContext
from tuneoff.run.trial.faults import note_kill
from tuneoff_adapters.ray_tune.session import DeferredTermination
from tuneoff_adapters.ray_tune.submission import Submissions

pytest.importorskip("ray")

LISTED = [{"x": 0.1}, {"x": 0.2}, {"x": 0.3}]


def make(folder: Path, **changes: Any) -> tuple[RunContext, Submissions]:
    spec = toy_spec("ray-tune", sampler="fixed", configurations=LISTED, retries=1, **changes)
    context = make_context(spec, folder)
    return context, Submissions(context, translation_of(spec))


def submitted(submissions: Submissions, count: int = 1) -> list[RayTrial]:
    trials = [RayTrial(trial_id=f"ray{index}", config={"p0": index}) for index in range(count)]
    for trial in trials:
        submissions.submit(trial, 0)
    return trials


def observer_of(submissions: Submissions) -> Any:
    from tuneoff_adapters.ray_tune.observer import Observer

    return Observer(submissions, DeferredTermination())


def events(context: RunContext, kind: type[Event]) -> list[Any]:
    return [event for _, event in EventLog(context.run_dir / "events").merged() if isinstance(event, kind)]


def test_tune_can_pickle_what_it_is_given(tmp_path: Path) -> None:
    _, submissions = make(tmp_path)
    submitted(submissions)
    assert pickle.loads(pickle.dumps(submissions)).__dict__ == {}


def test_the_searcher_learns_the_best_epoch_and_not_the_last(tmp_path: Path) -> None:
    from ray.tune.search import Searcher

    from tuneoff_adapters.ray_tune.searchers import AnnouncedSearch

    told: list[Any] = []

    class Listening(Searcher):  # type: ignore[misc]
        def suggest(self, trial_id: str) -> None:
            return None

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            told.append((trial_id, result and result["objective"], error))

    _, submissions = make(tmp_path)
    first = submitted(submissions, 2)[0]
    search, observer = AnnouncedSearch(submissions, Listening()), observer_of(submissions)
    for epoch, value in enumerate((0.5, 0.2, 0.4), start=1):
        observer.on_trial_result(0, [], first, {"objective": value, "epoch": epoch})
    search.on_trial_complete("ray0", {"objective": 0.4, "epoch": 3})
    search.on_trial_complete("ray1", error=True)
    assert told == [("ray0", 0.2, False), ("ray1", None, True)]


def test_a_stop_is_noted_unless_it_comes_at_the_last_epoch(tmp_path: Path) -> None:
    context, submissions = make(tmp_path, budget=Budget(trials=3, epochs_per_trial=4))
    trials, observer = submitted(submissions, 3), observer_of(submissions)
    observer.on_trial_result(0, [], trials[0], {"objective": 0.5, "epoch": 1})
    observer.on_trial_result(0, [], trials[1], {"objective": 0.5, "epoch": 2, "done": True})
    observer.on_trial_result(0, [], trials[2], {"objective": 0.5, "epoch": 4, "done": True})
    assert [(event.trial, event.epoch) for event in events(context, StopDecided)] == [("t00001", 2)]


# --- failures ---


def failed(submissions: Submissions, folder: Path, error: BaseException) -> RayTrial:
    """Return a trial whose error Ray has written down."""
    from ray import cloudpickle

    (trial,) = submitted(submissions)
    file = folder / "error.pkl"
    file.write_bytes(cloudpickle.dumps(error))
    trial.pickled_error_file = str(file)
    return trial


def task_error(cause: Exception) -> BaseException:
    from ray.exceptions import RayTaskError

    error: BaseException = RayTaskError("train", "a traceback", cause)
    return error


def actor_error() -> BaseException:
    from ray.exceptions import ActorDiedError

    error: BaseException = ActorDiedError()
    return error


def may_retry(submissions: Submissions) -> bool:
    from tuneoff_adapters.ray_tune.observer import may_retry as asked

    return asked(submissions, submissions["ray0"])


@pytest.mark.parametrize(
    ("cause", "is_tried_again"), [(TrialFailedError("ValueError: no"), False), (ConnectionError("the driver is gone"), True)]
)
def test_a_fault_of_the_framework_is_tried_again_and_none_of_the_workload(
    tmp_path: Path, cause: Exception, is_tried_again: bool
) -> None:
    _, submissions = make(tmp_path)
    failed(submissions, tmp_path, task_error(cause))
    assert may_retry(submissions) == is_tried_again


def test_a_death_by_a_signal_is_tried_again_and_noted(tmp_path: Path) -> None:
    context, submissions = make(tmp_path)
    trial = failed(submissions, tmp_path, actor_error())
    assert may_retry(submissions)
    observer_of(submissions).on_trial_recover(0, [], trial)
    (death,) = events(context, WorkerDied)
    assert (death.trial, death.attempt, death.exit_code) == ("t00000", 1, None)
    assert death.cause.startswith("ActorDiedError: ")
    assert "\n" not in death.cause
    assert [event.attempt for event in events(context, TrialSubmitted)] == [1, 2]


def test_a_trial_that_the_supervisor_killed_is_not_tried_again(tmp_path: Path) -> None:
    context, submissions = make(tmp_path)
    failed(submissions, tmp_path, actor_error())
    note_kill(context.run_dir, "t00000", 1, "timed out")
    assert not may_retry(submissions)


@pytest.mark.parametrize(
    ("cause", "said"),
    [(TrialFailedError("ValueError: no"), []), (TimeoutError("no free slot\nat all"), ["TimeoutError: no free slot"])],
)
def test_a_trial_that_failed_has_written_its_end_and_what_failed_around_it_has_not(
    tmp_path: Path, cause: Exception, said: list[str]
) -> None:
    context, submissions = make(tmp_path)
    trial = failed(submissions, tmp_path, task_error(cause))
    observer_of(submissions).on_trial_error(0, [], trial)
    assert [event.cause for event in events(context, WorkerDied)] == said
