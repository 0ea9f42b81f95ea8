"""Pruners: the epochs at which trials are compared, as decided by Optuna's own classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from optuna.pruners import HyperbandPruner
from optuna.trial import TrialState

from adapters.framework_objects import memory_study, plan_of
from builders.asha_rungs import rungs
from builders.specs import toy_spec
from tuneoff_adapters.optuna.offers import CAPABILITIES
from tuneoff_adapters.optuna.plan import StudyPlan
from tuneoff_adapters.optuna.pruners import make_pruner, max_resource
from tuneoff_adapters.optuna.search import distributions, make_sampler
from tuneoff_adapters.optuna.study import quieten

EPOCHS = 30


@pytest.fixture(autouse=True)
def _quiet() -> None:
    quieten()


def stops(plan: StudyPlan, trials: int, loss: Callable[[int, int], float]) -> list[int]:
    """Return the epoch at which each trial was stopped (0: never), asked for as the worker does: not at the last epoch."""
    study = memory_study(plan)
    stopped = []
    for number in range(trials):
        trial = study.ask(distributions(plan.translation.native))
        last = 0
        for epoch in range(1, plan.epochs + 1):
            trial.report(loss(number, epoch), epoch)
            if epoch < plan.epochs and trial.should_prune():
                last = epoch
                break
        if last:
            study.tell(trial, state=TrialState.PRUNED)
        else:
            study.tell(trial, loss(number, plan.epochs))
        stopped.append(last)
    return stopped


def late_loser(good_until: int) -> Callable[[int, int], float]:
    """Each trial is better than all before up to an epoch, and the worst of all after it."""
    return lambda number, epoch: -float(number) if epoch <= good_until else float(number)


def asha(**options: Any) -> StudyPlan:
    return plan_of(toy_spec("optuna", pruner="asha", pruner_options=options, epochs=EPOCHS))


@pytest.mark.parametrize(("first", "factor"), [(1, 3), (2, 2), (4, 4), (1, 2)])
def test_asha_compares_exactly_at_the_rungs(first: int, factor: int) -> None:
    plan = asha(first_rung_epochs=first, reduction_factor=factor)
    expected = rungs(first, factor, EPOCHS)
    found = set()
    for good_until in range(EPOCHS):
        found |= {epoch for epoch in stops(plan, 3, late_loser(good_until)) if epoch}
    assert sorted(found) == expected


def test_asha_never_stops_at_the_last_epoch() -> None:
    plan = plan_of(toy_spec("optuna", pruner="asha", epochs=9))
    assert stops(plan, 4, lambda number, epoch: float(number) if epoch == 9 else 0.0) == [0, 0, 0, 0]


def test_pruners_know_which_way_is_better() -> None:
    for mode, expected in (("min", [0, 1, 1]), ("max", [0, 0, 0])):
        plan = plan_of(toy_spec("optuna", pruner="asha", mode=mode))
        assert stops(plan, 3, lambda number, epoch: float(number)) == expected


def test_median_stops_first_at_the_given_epoch_and_after_enough_completed_trials() -> None:
    plan = plan_of(toy_spec("optuna", pruner="median", pruner_options={"first_epoch": 4, "min_trials": 3}, epochs=EPOCHS))
    assert stops(plan, 6, lambda number, epoch: float(number)) == [0, 0, 0, 4, 4, 4]


@pytest.mark.parametrize("factor", [2, 3, 4, 5, 10])
@pytest.mark.parametrize("first", [1, 2, 3, 7])
def test_hyperband_has_exactly_the_given_number_of_brackets(first: int, factor: int) -> None:
    for brackets in range(1, 8):
        pruner = HyperbandPruner(min_resource=first, max_resource=max_resource(first, factor, brackets), reduction_factor=factor)
        pruner._try_initialization(memory_study(plan_of(toy_spec("optuna"))))
        assert pruner._n_brackets == brackets


def test_hyperband_brackets_differ_in_their_first_rung() -> None:
    plan = plan_of(toy_spec("optuna", pruner="hyperband", epochs=EPOCHS, trials=60))
    found = {epoch for epoch in stops(plan, 60, lambda number, epoch: float(number)) if epoch}
    assert found == {1, 3, 9}


def test_every_offered_pruner_can_be_made_and_is_the_declared_class() -> None:
    for name, offer in CAPABILITIES.pruners.items():
        pruner = make_pruner(plan_of(toy_spec("optuna", pruner=name)))
        assert offer.implementation.endswith(f".{type(pruner).__name__}")


def test_a_worker_of_one_seed_proposes_the_same_twice_and_others_otherwise() -> None:
    plan = plan_of(toy_spec("optuna", sampler="tpe", sampler_options={"n_startup_trials": 3}))

    def proposed(worker: int, generation: int) -> list[dict[str, Any]]:
        study = memory_study(plan)
        study.sampler = make_sampler(plan, worker, generation)
        for number in range(6):
            study.tell(study.ask(distributions(plan.translation.native)), float(number))
        return [trial.params for trial in study.trials]

    first = proposed(0, 0)
    assert proposed(0, 0) == first
    assert first not in (proposed(1, 0), proposed(0, 1))
