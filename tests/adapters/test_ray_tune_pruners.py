"""Ray's schedulers as the adapter sets them. Starts no Ray instance."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.framework_objects import RayTrial
from builders.asha_rungs import rungs
from builders.specs import make_context, toy_spec
from tuneoff.experiment.translation import translation_of
from tuneoff_adapters.ray_tune.submission import Submissions

pytest.importorskip("ray")

CONTINUE, STOP = "CONTINUE", "STOP"


class Scheduler:
    """A scheduler with its properties set as the Tuner sets them."""

    def __init__(self, folder: Path, pruner: str, options: dict[str, int], epochs: int) -> None:
        from tuneoff_adapters.ray_tune.schedulers import make_scheduler

        given: dict[str, Any] = {"sampler": "fixed", "configurations": [{"x": 0.1}, {"x": 0.2}]}
        spec = toy_spec("ray-tune", **given, pruner=pruner, pruner_options=options, epochs=epochs)
        self.submissions = Submissions(make_context(spec, folder), translation_of(spec))
        self.scheduler = make_scheduler(spec.experiment, self.submissions)
        self.scheduler.set_search_properties("objective", "min")

    def add(self, name: str) -> RayTrial:
        trial = RayTrial(trial_id=name)
        self.scheduler.on_trial_add(None, trial)
        return trial

    def report(self, trial: RayTrial, epoch: int, value: float, controller: Any = None) -> str:
        decision: str = self.scheduler.on_trial_result(controller, trial, {"epoch": epoch, "objective": value})
        return decision


def stopping_epochs(folder: Path, options: dict[str, int], epochs: int) -> list[int]:
    """Return the epochs after which a trial that turns worse there, and only there, is stopped."""
    found = []
    for epoch in range(1, epochs):
        scheduler = Scheduler(folder, "asha", options, epochs)
        good, other = scheduler.add("good"), scheduler.add("other")
        assert [scheduler.report(good, before, 0.5) for before in range(1, epochs + 1)] == [CONTINUE] * epochs
        for before in range(1, epoch):
            assert scheduler.report(other, before, 0.5) == CONTINUE
        if scheduler.report(other, epoch, 0.9) == STOP:
            found.append(epoch)
    return found


@pytest.mark.parametrize(("first", "factor", "epochs"), [(1, 3, 9), (1, 3, 10), (2, 2, 16), (3, 3, 3)])
def test_asha_compares_at_the_rungs_that_core_names(tmp_path: Path, first: int, factor: int, epochs: int) -> None:
    options = {"first_rung_epochs": first, "reduction_factor": factor}
    assert stopping_epochs(tmp_path, options, epochs) == rungs(first, factor, epochs)


def test_hyperband_has_brackets_with_later_first_rungs(tmp_path: Path) -> None:
    scheduler = Scheduler(tmp_path, "hyperband", {"first_rung_epochs": 1, "reduction_factor": 3, "brackets": 3}, 9)
    firsts = [min((epoch for epoch, _ in bracket._rungs), default=None) for bracket in scheduler.scheduler._brackets]
    assert firsts == [1, 3, 9]


def test_the_median_rule_waits_for_its_first_epoch_and_its_trials(tmp_path: Path) -> None:
    scheduler = Scheduler(tmp_path, "median", {"first_epoch": 2, "min_trials": 2}, 4)
    waiting = SimpleNamespace(get_live_trials=lambda: [SimpleNamespace(status="PENDING")])
    one, two, bad = scheduler.add("one"), scheduler.add("two"), scheduler.add("bad")
    for epoch in (1, 2, 3):
        assert scheduler.report(one, epoch, 0.1, waiting) == CONTINUE
    assert scheduler.report(bad, 1, 0.9, waiting) == CONTINUE  # before the first epoch
    assert scheduler.report(bad, 2, 0.9, waiting) == CONTINUE  # one other trial is too few, and a reason to pause for Ray
    for epoch in (1, 2, 3):
        scheduler.report(two, epoch, 0.2, waiting)
    assert scheduler.report(bad, 3, 0.9, waiting) == STOP
