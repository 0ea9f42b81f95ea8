"""Whatever the trials do: no more are active than parallelTrialCount, and no more are made than Katib makes."""

from __future__ import annotations

import random
import time

import pytest

from emulated.katib_world import World, experiment_named, world
from katib_emulation.objects import JOBS, TRIALS, has_condition

ENDS = ("Succeeded", "Failed", "Killed", "EarlyStopped", "MetricsUnavailable")


class Watcher:
    """Sees every change of Trials and Jobs, and keeps the largest numbers of the active and of all."""

    def __init__(self, katib: World) -> None:
        self._changes = katib.store.subscribe(TRIALS, JOBS)
        self._alive: dict[str, bool] = {}
        self.most_active = 0
        self.trials: set[str] = set()

    def look(self) -> None:
        """Take in all changes so far."""
        while (change := self._changes.next(0)) is not None:
            if change.kind is not TRIALS:
                continue
            name = change.object["metadata"]["name"]
            self.trials.add(name)
            self._alive[name] = change.type != "DELETED" and not has_condition(change.object, *ENDS)
            self.most_active = max(self.most_active, sum(self._alive.values()))


def play(katib: World, parallel: int, most: int, seed: int, *, without_metrics: bool) -> Watcher:
    """Run an experiment whose trials end in random order and ways; return what was seen."""
    dice = random.Random(seed)
    watcher = Watcher(katib)
    katib.submit(experiment_named(parallelTrialCount=parallel, maxTrialCount=most))
    deadline = time.monotonic() + 60
    while not has_condition(katib.experiment(), "Succeeded"):
        assert time.monotonic() < deadline
        jobs = katib.jobs()
        for name in dice.sample(jobs, dice.randint(0, len(jobs))):
            end = dice.choice(["good", "bad", "none" if without_metrics else "good"])
            katib.end_job(
                name, {"good": ["0.5"], "bad": [], "none": ["unavailable"]}[end], "Failed" if end == "bad" else "Complete"
            )
        watcher.look()
    watcher.look()
    return watcher


@pytest.mark.parametrize("seed", range(6))
def test_active_and_all_trials_stay_within_the_budget(seed: int) -> None:
    parallel = 1 + seed % 4
    with world() as katib:
        seen = play(katib, parallel, 9, seed, without_metrics=False)
    assert seen.most_active == parallel
    assert len(seen.trials) == 9


def test_trials_without_metrics_exceed_the_maximum_by_less_than_the_parallelism() -> None:
    for seed in range(100):
        with world() as katib:
            seen = play(katib, 3, 6, seed, without_metrics=True)
        assert seen.most_active <= 3
        assert 6 <= len(seen.trials) <= 6 + 2
        if len(seen.trials) > 6 and seed >= 5:
            return
    raise AssertionError("the surplus of Katib was never there")
