"""What is added to a trial and a report, as events give it, and from how many workers on utilization is lost."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from benchmarks.predicted import measured, predicted
from builders.event_logs import Log
from builders.made_results import Draw, Entry, Metrics, results
from builders.specs import make_spec
from corpus.scenarios import CHOICE
from tuneoff.experiment.spec import Workers
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Choice
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.curve import limit
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.events import schema

pytest.importorskip("scipy")
COUNTS = (1, 2, 4, 8, 16, 32, 64)


def of_events(
    epochs: int, wait: float, epoch: float = 1.0, last: float | None = None, told: str = "every_epoch"
) -> Mapping[str, float]:
    """Return what one worker's events give: six trials of so many epochs, a wait in each report, 3 s from trial to trial.

    `last`: the wait in a trial's last report, where that is another one. `told`: of which epochs the framework is.
    """
    log, at = Log(), 1.0
    log.step("deploy", 0, 1)
    worker = log.process("worker", 0)
    for number in range(6):
        name = f"t{number}"
        log.submit(name, at, x=number / 10)
        at += 3
        worker.start(name, at, slot=0, x=number / 10)
        for done in range(1, epochs + 1):
            is_told = told == "every_epoch" or (told == "at_end" and done == epochs)
            waited = (last if last is not None and done == epochs else wait) if is_told else 0.0
            worker.epoch(name, done, at + epoch, 0.5, reported=at + epoch + waited if is_told else None, is_reported=is_told)
            at += epoch + waited
        worker.end(name, at, "completed", epochs)
    log.step("collect", at, at + 1)
    log.coordinator.add(schema.BestKnown, at + 1, trial="t0")
    log.step("undeploy", at + 2, at + 3)
    run = with_metrics(derive(log.pairs(), make_spec(trials=6, epochs=epochs, workers=Workers(count=1))))
    return {name: one.value for name, one in run.metrics.items() if one.value is not None}


def drawn(metrics: Mapping[str, float]) -> Draw:
    """Return these metrics with a percent of chance."""

    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{sorted(metrics.items())} {seed}")
        return {name: value * (1 + 0.01 * chance.gauss(0, 1)) for name, value in metrics.items()} | {"time.jct": 1e5}

    return draw


def choice_of(variants: Mapping[Any, Mapping[str, float]]) -> Choice:
    return choose(answers(results([Entry("optuna", drawn(of), variant={"v": v}) for v, of in variants.items()], **CHOICE)))


@pytest.mark.parametrize("wait", [0.0, 0.5, 4.0])
@pytest.mark.parametrize("epochs", [2, 10, 40])
def test_a_wait_per_report_is_not_what_a_trial_adds(epochs: int, wait: float) -> None:
    found = of_events(epochs, wait)
    assert (found["overhead.further_trial"], found["overhead.per_report"]) == pytest.approx((3000, 1000 * wait))
    assert found["overhead.reports"] == epochs


@pytest.mark.parametrize(("last", "each", "trial"), [(2.0, 0.5, 4.5), (0.5, 0.5, 3.0), (0.0, 0.45, 3.0)])
def test_what_a_trial_s_last_report_waits_more_is_the_trial_s(last: float, each: float, trial: float) -> None:
    """It is the only one of which some frameworks are told; one that waits less makes no part negative."""
    found = of_events(10, wait=0.5, last=last)
    assert (found["overhead.per_report"], found["overhead.further_trial"]) == pytest.approx((1000 * each, 1000 * trial))


@pytest.mark.parametrize(("told", "reports", "each"), [("at_end", 1, 500), ("none", 0, None)])
def test_epochs_of_which_the_framework_is_not_told_are_no_reports(told: str, reports: int, each: float | None) -> None:
    found = of_events(50, wait=0.5, told=told)
    assert (found["overhead.reports"], found["overhead.further_trial"]) == pytest.approx((reports, 3000))
    assert found.get("overhead.per_report") == (None if each is None else pytest.approx(each))


@pytest.mark.parametrize("told", ["every_epoch", "at_end", "none"])
def test_trials_of_10_and_50_epochs_predict_those_of_200_by_their_reports(told: str) -> None:
    of = {epochs: of_events(epochs, wait=0.5, told=told) for epochs in (10, 50, 200)}
    choice = choice_of(of)
    few, more, many = choice_to_json(choice)["settings"][0]["rows"][0]["columns"].values()
    guess, found = predicted([few, more], 200), measured(many)
    assert guess.estimate == pytest.approx(found.estimate, rel=0.03)
    assert guess.low < guess.estimate < guess.high
    first, *longer = choice.settings[0].curves[0].lines["optuna"]
    for point in longer if told == "every_epoch" else []:
        assert point.predicted == pytest.approx(point.value.estimate, rel=0.03)
        assert point.value.estimate > 3 * first.value.estimate * first.x / point.x, "as many seconds per trial were far less"
    assert [point.is_extrapolated for point in longer] == [False, True]


def test_trials_of_one_report_predict_no_other_number_of_reports() -> None:
    """What their one report adds may be what the trial adds."""
    of = {1.0: of_events(1, 0.5), 4.0: of_events(1, 0.5, epoch=4.0), 20.0: of_events(20, 0.5)}
    _, same, more = choice_of(of).settings[0].curves[0].lines["optuna"]
    assert same.predicted == pytest.approx(same.value.estimate, rel=0.03)
    assert more.predicted is None


def utilization(ceiling: float, counts: Sequence[int] = COUNTS) -> dict[int, float]:
    """Return what a framework reaches that keeps each worker busy for 98 % of the time, and no more than so many."""
    return {count: min(98.0, 100 * ceiling / count) for count in counts}


@pytest.mark.parametrize(("ceiling", "below", "knee"), [(3.0, 4, 3.06), (20.0, 32, 20.4), (0.5, 1, 1.0), (62.0, math.inf, None)])
def test_the_loss_begins_where_a_ceiling_is_and_the_knee_is_there(ceiling: float, below: float, knee: float | None) -> None:
    found = limit([utilization(ceiling)] * 3, 0.95)
    assert (found.below, found.low, found.high, found.measured) == (below, below, below, 64)
    assert (None if found.knee is None else found.knee.estimate) == (knee if knee is None else pytest.approx(knee, rel=0.01))


@pytest.mark.parametrize(
    ("seeds", "text"),
    [
        ([{**utilization(1000.0), 8: 60.0}], "not up to 64"),
        ([utilization(3.0, (1, 16))], "from 16 workers on"),
        ([utilization(40.0, (1, 16, 64))], "from 64 workers on"),
        ([{1: 100.0, 4: 100.0, 16: 0.0}], "from 16 workers on"),
        ([{1: 100.0, 4: 100.0, 16: 25.0, 64: 0.0}], "from 16 workers on (knee 4.0)"),
        ([{1: 99.0, 4: 98.0}, {1: 99.0, 4: 98.0, 64: 97.0}], "not up to 64"),
        ([utilization(ceiling) for ceiling in (3.0, 5.0, 9.0)], "from 8 workers on (4 to 16 by seed; knee 5.1, 0 to 14)"),
    ],
    ids=["a dent", "two numbers", "the last alone", "failed", "failed beyond a knee", "a seed with fewer", "seeds that differ"],
)
def test_what_a_few_numbers_show_is_no_ceiling(seeds: list[dict[int, float]], text: str) -> None:
    assert limit(seeds, 0.95).text == text
