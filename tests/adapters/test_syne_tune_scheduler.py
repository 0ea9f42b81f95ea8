"""Seeds, budget, retries and stops of the scheduler, driven by direct calls as Syne Tune's tuner makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from builders.specs import make_context, toy_spec
from tuneoff.base.identity import configuration_digest
from tuneoff.base.space import Categorical, Float, SearchSpace, stepped
from tuneoff.experiment.spec import Objective, RunSpec, Strategy
from tuneoff.experiment.translation import translation_of
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.run.trial.faults import note_kill
from tuneoff_adapters.syne_tune.dispatch import Dispatch
from tuneoff_adapters.syne_tune.reporter import OBJECTIVE
from tuneoff_adapters.syne_tune.schedulers import make_scheduler

SPACE = SearchSpace(
    {
        "x": Float(low=0.0, high=1.0),
        "rate": Float(low=1e-4, high=1.0, log=True),
        "depth": stepped(1, 4, 1, integer=True),
        "kind": Categorical(choices=("a", "b", "c")),
    }
)


class Driver:
    """A scheduler and its dispatch over a real run folder; `start` and the methods after it do what the tuner does."""

    def __init__(self, spec: RunSpec, folder: Path) -> None:
        from tuneoff_adapters.syne_tune.budgeted import BudgetedScheduler

        self.context = make_context(spec, folder)
        translation = translation_of(spec)
        self.dispatch = Dispatch(self.context)
        self.scheduler = BudgetedScheduler(self.context, self.dispatch, make_scheduler(spec, translation), translation)
        self.number = 0

    def start(self) -> Any:
        """Ask for a suggestion and start it; return Syne Tune's trial, or None."""
        from syne_tune.backend.trial_status import Trial

        suggestion = self.scheduler.suggest()
        if suggestion is None:
            return None
        trial = Trial(trial_id=self.number, config=suggestion.config, creation_time=datetime.now())
        self.dispatch.start(self.number)
        self.number += 1
        self.scheduler.on_trial_add(trial)
        return trial

    def start_all(self) -> list[Any]:
        return list(iter(self.start, None))

    def report(self, trial: Any, epoch: int, value: float) -> str:
        decision: str = self.scheduler.on_trial_result(trial, {"epoch": epoch, OBJECTIVE: value})
        return decision

    def die(self, trial: Any, exit_code: int) -> None:
        assert not self.dispatch.has_completed_early(trial.trial_id, 2**22, exit_code)
        self.scheduler.on_trial_error(trial)

    def events(self, kind: type[schema.Event]) -> Iterator[Any]:
        return (event for _, event in EventLog(self.context.run_dir / "events") if isinstance(event, kind))

    def close(self) -> None:
        self.context.events.close()


Make = Callable[..., Driver]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes drivers of runs of so many trials and epochs; what is said beside them is that of `toy_spec`."""
    drivers: list[Driver] = []

    def make_driver(trials: int = 10, epochs: int = 3, **changes: Any) -> Driver:
        spec = toy_spec("syne-tune", trials=trials, epochs=epochs, **{"space": SPACE, **changes})
        drivers.append(Driver(spec, tmp_path))
        return drivers[-1]

    yield make_driver
    for driver in drivers:
        driver.close()


def proposals(driver: Driver) -> list[dict[str, Any]]:
    return [dict(task.configuration) for task in driver.dispatch.tasks.values()]


def test_tpe_with_its_model_is_not_random_search(make: Make) -> None:
    found = []
    for sampler in (Strategy(name="random"), Strategy(name="tpe", options={"num_min_data_points": 5})):
        driver = make(30, sampler=sampler)
        while (trial := driver.start()) is not None:
            driver.scheduler.on_trial_complete(trial, {"epoch": 3, OBJECTIVE: float(trial.config["x"])})
        found.append(proposals(driver))
    assert found[0][:10] == found[1][:10]  # both random as long as the model has too little
    assert found[0] != found[1]
    late = [[configuration["x"] for configuration in run[15:]] for run in found]
    assert sum(late[1]) < sum(late[0])


@pytest.mark.parametrize("pruner", ["none", "asha", "median"])
def test_a_given_list_is_proposed_in_its_order_and_nothing_else(make: Make, pruner: str) -> None:
    configurations = tuple({"x": index / 10, "rate": 0.5, "depth": 1, "kind": "b"} for index in range(8))
    driver = make(20, sampler="fixed", configurations=configurations, pruner=pruner)
    while (trial := driver.start()) is not None:
        driver.report(trial, 1, 0.5)
    assert proposals(driver) == list(configurations)


@pytest.mark.parametrize("mode", ["min", "max"])
def test_asha_compares_at_its_rungs_and_never_stops_after_the_last_epoch(make: Make, mode: str) -> None:
    options = {"first_rung_epochs": 1, "reduction_factor": 3}
    sign = 1.0 if mode == "min" else -1.0
    driver = make(4, 9, pruner="asha", pruner_options=options, mode=mode)
    good, worse, worst, late = driver.start_all()
    assert driver.report(good, 1, sign * 0.1) == "CONTINUE"  # the first at a rung always goes on
    assert driver.report(worse, 1, sign * 0.2) == "STOP"
    assert driver.report(worst, 1, sign * 0.3) == "STOP"
    assert [driver.report(good, epoch, sign * 0.1) for epoch in range(2, 10)] == ["CONTINUE"] * 8
    assert driver.report(late, 1, sign * 0.05) == "CONTINUE"
    assert driver.report(late, 2, sign * 9.0) == "CONTINUE"  # no rung
    assert driver.report(late, 9, sign * 9.0) == "CONTINUE"  # a rung, but all its epochs are done


@pytest.mark.parametrize("mode", ["min", "max"])
def test_median_waits_for_the_first_epoch_and_for_enough_trials(make: Make, mode: str) -> None:
    options = {"first_epoch": 2, "min_trials": 3}
    driver = make(5, 5, pruner="median", pruner_options=options, mode=mode)
    sign = 1.0 if mode == "min" else -1.0
    trials = driver.start_all()
    assert [driver.report(trial, 1, sign * index) for index, trial in enumerate(trials)] == ["CONTINUE"] * 5
    assert [driver.report(trial, 2, sign * index) for index, trial in enumerate(trials)] == ["CONTINUE"] * 3 + ["STOP"] * 2


def test_a_trial_that_was_over_a_limit_or_stopped_is_not_tried_again(make: Make) -> None:
    configuration = {"x": 0.1, "rate": 0.5, "depth": 1, "kind": "b"}
    stops = {configuration_digest(configuration): 1}
    driver = make(2, sampler="fixed", configurations=(configuration,) * 2, retries=1, pruner="scripted", stops=stops)
    limited, stopped = driver.start_all()
    note_kill(driver.context.run_dir, "t00000", 1, "timed out")
    driver.die(limited, -9)
    assert driver.report(stopped, 1, 0.0) == "STOP"
    driver.die(stopped, -9)
    assert driver.start() is None


@pytest.mark.parametrize("value", [0.1, 0.9])
def test_a_trial_whose_value_ends_the_run_at_its_goal_is_not_stopped(make: Make, value: float) -> None:
    configuration = {"x": 0.1, "rate": 0.5, "depth": 1, "kind": "b"}
    stops, objective = {configuration_digest(configuration): 1}, Objective(metric="loss", mode="min", goal=0.5, stop=True)
    stopping = {"pruner": "scripted", "stops": stops, "objective": objective}
    target = "tuneoff_adapters.syne_tune.adapter:SyneTuneAdapter"
    driver = make(1, sampler="fixed", configurations=(configuration,), target=target, **stopping)
    (trial,) = driver.start_all()
    assert driver.report(trial, 1, value) == ("CONTINUE" if value < 0.5 else "STOP")
    assert value > 0.5 or driver.report(trial, 2, 0.9) == "CONTINUE"  # of the same poll: the tuner asks for the goal after it
