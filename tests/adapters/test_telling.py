"""What a new study, Tuner or tuner is told of a run's earlier executions. No framework runs a trial here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.specs import TOY_SPACE, make_context, toy_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.experiment.strategies import draws
from tuneoff.experiment.translation import translation_of
from tuneoff.record.history import EarlierExecution, FinishedTrial, History, UnfinishedTrial
from tuneoff.record.run_context import RunContext

STATES = ("completed", "pruned", "failed", "completed")


def history_of(configurations: Sequence[Mapping[str, Any]]) -> History:
    """Four finished trials and one that was lost; the event of a sixth was lost too."""
    finished = []
    for number, state in enumerate(STATES):
        values = () if state == "failed" else ((1, 0.9 - number / 10), (2, 0.8 - number / 10))[: 1 if state == "pruned" else 2]
        value = min((value for _, value in values), default=None)
        trial = FinishedTrial(
            trial_id=f"t{number:05d}", configuration=configurations[number], state=state, values=values, value=value
        )
        finished.append(trial)
    lost = UnfinishedTrial(trial_id="t00005", configuration=configurations[5], attempt=2)
    earlier = EarlierExecution(execution_id="run-a", status="interrupted", reason="killed", charged="user")
    return History(finished=tuple(finished), unfinished=(lost,), executions=(earlier,), epochs=5, seconds=1.0)


def drawn(count: int) -> list[Mapping[str, Any]]:
    found = draws(TOY_SPACE, 99)
    return [next(found) for _ in range(count)]


class TestOptuna:
    """`study.add_trial` for what is finished, `enqueue_trial` for what is begun again."""

    def test_the_study_has_what_was_finished_and_asks_first_for_what_was_not(self, tmp_path: Path) -> None:
        from tuneoff_adapters.optuna.coordinator_study import create_study
        from tuneoff_adapters.optuna.distributions import chosen, distributions
        from tuneoff_adapters.optuna.plan_of_run import study_plan

        configurations, spec = drawn(6), toy_spec("optuna", sampler="tpe", trials=10)
        history = history_of(configurations)
        plan = study_plan(spec, tmp_path, history)
        study = create_study(plan, history)
        told = study.get_trials()
        assert [trial.state.name for trial in told] == ["COMPLETE", "PRUNED", "FAIL", "COMPLETE", "WAITING"]
        assert [trial.value for trial in told] == [0.8, 0.8, None, 0.5, None]
        assert told[0].intermediate_values == {1: 0.9, 2: 0.8}
        assert [plan.translation.decode(trial.params) for trial in told[:4]] == configurations[:4]
        asked = study.ask()
        assert plan.trial_id(asked.number, asked.user_attrs) == "t00005"
        assert chosen(asked, distributions(plan.translation.native), plan.translation) == configurations[5]
        new = study.ask()
        assert plan.trial_id(new.number, new.user_attrs) == "t00006", "t00004 was begun, and its event was lost"
        assert plan.trials == 6, "asks for the lost one and five new ones"
        assert plan.sampler_seed(0, 0) != study_plan(spec, tmp_path).sampler_seed(0, 0)

    def test_of_a_list_what_was_not_begun_is_enqueued(self, tmp_path: Path) -> None:
        from tuneoff_adapters.optuna.coordinator_study import create_study
        from tuneoff_adapters.optuna.plan_of_run import study_plan

        configurations = drawn(7)
        spec = toy_spec("optuna", sampler="fixed", trials=7, configurations=configurations)
        history = history_of(configurations)
        study = create_study(study_plan(spec, tmp_path, history), history)
        waiting = [trial.system_attrs["fixed_params"] for trial in study.get_trials()[4:]]
        assert waiting == [{"configuration_index": index} for index in (5, 4, 6)]

    def test_sobol_repeats_no_point(self, tmp_path: Path) -> None:
        from tuneoff_adapters.optuna.coordinator_study import create_study
        from tuneoff_adapters.optuna.distributions import chosen, distributions
        from tuneoff_adapters.optuna.plan_of_run import study_plan
        from tuneoff_adapters.optuna.samplers import make_sampler

        spec = toy_spec("optuna", sampler="sobol", trials=12)
        plan = study_plan(spec, tmp_path / "first")
        Path(plan.folder).mkdir()
        study = create_study(plan)
        study.sampler = make_sampler(plan, 0)
        wanted = distributions(plan.translation.native)

        def ask(study: Any) -> dict[str, Any]:
            trial = study.ask()
            configuration = chosen(trial, wanted, plan.translation)
            study.tell(trial, 0.5)
            return configuration

        first = [ask(study) for _ in range(6)]
        history = history_of(list(first))
        plan = study_plan(spec, tmp_path / "second", history)
        Path(plan.folder).mkdir()
        again = create_study(plan, history)
        again.sampler = make_sampler(plan, 0)
        later = [ask(again) for _ in range(6)]
        assert later[0] == first[5], "the lost one"
        seen = {configuration_digest(configuration) for configuration in first}
        assert not seen & {configuration_digest(configuration) for configuration in later[1:]}

    def test_cmaes_is_refused_with_the_reason(self) -> None:
        from tuneoff_adapters.optuna.adapter import OptunaAdapter

        reason = OptunaAdapter.refuse_continue(toy_spec("optuna", sampler="cmaes"))
        assert reason is not None
        assert "keeps its state in the study that was interrupted" in reason
        assert OptunaAdapter.refuse_continue(toy_spec("optuna", sampler="tpe")) is None


Begun = list[tuple[str, int, dict[str, Any]]]  # of each trial its name, its attempt and its configuration


def begun_by_ray_tune(context: RunContext, count: int) -> Begun:
    """Random search draws again and passes over; OptunaSearch and the schedulers are told."""
    from ray.tune.experiment import Experiment

    from tuneoff_adapters.ray_tune.keys import OBJECTIVE, TASK
    from tuneoff_adapters.ray_tune.searchers import make_search, param_space
    from tuneoff_adapters.ray_tune.submission import Submissions
    from tuneoff_adapters.ray_tune.trainable import TrialTrainable

    translation = translation_of(context.spec)
    submissions = Submissions(context, translation)
    search = make_search(context.spec, submissions)
    space = param_space(translation, submissions.keys)
    search.set_search_properties(OBJECTIVE, "min", space)
    experiment = Experiment("x", TrialTrainable, config=space, num_samples=10, storage_path=str(context.work_dir))
    search.add_configurations([experiment])
    found = []
    for _ in range(count):
        trial = search.next_trial()
        if trial is None:
            break
        task = trial.config[TASK]
        found.append((task["trial"], task["attempt"], task["configuration"]))
        search.on_trial_complete(trial.trial_id)
    return found


def begun_by_syne_tune(context: RunContext, count: int, inner: Any = None) -> Begun:
    """The scheduler is told through the calls of a tuner; `inner`: Syne Tune's own."""
    from tuneoff_adapters.syne_tune.budgeted import BudgetedScheduler
    from tuneoff_adapters.syne_tune.dispatch import Dispatch
    from tuneoff_adapters.syne_tune.schedulers import make_scheduler

    translation, dispatch = translation_of(context.spec), Dispatch(context)
    inner = inner or make_scheduler(context.spec, translation, context.history)
    scheduler = BudgetedScheduler(context, dispatch, inner, translation)
    found = []
    for number in range(count):
        if scheduler.suggest() is None:
            break
        task = dispatch.start(number)
        found.append((task.trial_id, task.attempt, dict(task.configuration)))
    return found


BY: Mapping[str, Callable[[RunContext, int], Begun]] = {"ray-tune": begun_by_ray_tune, "syne-tune": begun_by_syne_tune}


@pytest.mark.parametrize("adapter", BY)
def test_random_search_goes_on_where_it_was(tmp_path: Path, adapter: str) -> None:
    spec, begun = toy_spec(adapter), BY[adapter]
    whole = begun(make_context(spec, tmp_path / "whole"), 20)
    history = history_of([configuration for _, _, configuration in whole])
    rest = begun(make_context(spec, tmp_path / "rest", history), 20)
    assert [(name, attempt) for name, attempt, _ in rest] == [
        ("t00004", 1),
        ("t00005", 2),
        *((f"t{number:05d}", 1) for number in range(6, 10)),
    ]
    assert [configuration for _, _, configuration in rest] == [configuration for _, _, configuration in whole[4:]]


@pytest.mark.parametrize(
    ("adapter", "sampler", "asked"),  # how often; Syne Tune's scheduler ends by itself
    [("ray-tune", "tpe", 6), *(pytest.param("syne-tune", name, 20, marks=pytest.mark.slow) for name in ("tpe", "bore", "rea"))],
)
def test_a_sampler_that_learns_begins_with_what_was_lost(tmp_path: Path, adapter: str, sampler: str, asked: int) -> None:
    configurations = drawn(6)
    context = make_context(toy_spec(adapter, sampler=sampler), tmp_path, history_of(configurations))
    rest = BY[adapter](context, asked)
    assert [(name, attempt) for name, attempt, _ in rest] == [("t00005", 2), *((f"t{number:05d}", 1) for number in range(6, 11))]
    assert rest[0][2] == configurations[5]


def test_the_rungs_of_asha_in_ray_have_the_values_of_finished_trials(tmp_path: Path) -> None:
    from tuneoff_adapters.ray_tune.keys import OBJECTIVE
    from tuneoff_adapters.ray_tune.schedulers import make_scheduler
    from tuneoff_adapters.ray_tune.submission import Submissions

    spec = toy_spec("ray-tune", pruner="asha")
    context = make_context(spec, tmp_path, history_of(drawn(6)))
    scheduler = make_scheduler(spec.experiment, Submissions(context, translation_of(spec)))
    scheduler.set_search_properties(OBJECTIVE, "min")
    recorded = scheduler._brackets[0]._rungs[-1][1]
    assert recorded == {"earlier_t00000": -0.9, "earlier_t00001": -0.8, "earlier_t00003": pytest.approx(-0.6)}


@pytest.mark.parametrize("sampler", ["cmaes", "sobol"])
def test_samplers_of_ray_with_a_state_of_their_own_are_refused(sampler: str) -> None:
    from tuneoff_adapters.ray_tune.adapter import RayTuneAdapter

    assert RayTuneAdapter.refuse_continue(toy_spec("ray-tune", sampler=sampler)) is not None


def test_the_rungs_of_asha_in_syne_tune_have_the_values_of_finished_trials(tmp_path: Path) -> None:
    from tuneoff_adapters.syne_tune.schedulers import make_scheduler

    spec = toy_spec("syne-tune", pruner="asha", sampler="tpe")
    context = make_context(spec, tmp_path, history_of(drawn(6)))
    inner = make_scheduler(spec, translation_of(spec), context.history)
    assert begun_by_syne_tune(context, 1, inner) == [("t00005", 2, drawn(6)[5])]
    recorded = [sorted(value for one in rung.values() for value in one.values()) for _, rung in inner.brackets[0].rungs]
    assert recorded[-1] == pytest.approx([0.6, 0.8, 0.9]), "the values of the first epoch"
