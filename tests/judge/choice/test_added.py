"""What is added to a job, a trial and a report: it predicts other trials, is above the baseline, and rests on quiet runs."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.predicted import measured, predicted
from builders.event_logs import Log
from builders.made_results import OF_EPOCHS, Draw, Entry, Metrics, results
from builders.present import present
from builders.specs import make_spec
from tuneoff.experiment.spec import Workers
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.choice.added import FURTHEST, Added, covering
from tuneoff.judge.choice.choice import Choice, Setting
from tuneoff.judge.choice.choose import answered
from tuneoff.measure.derived import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.events import schema

pytest.importorskip("scipy")
PARTS = ("time.setup", "time.result_collection", "time.undeploy", "overhead.job_start")
QUESTIONS = {"time": "time.jct", "overhead": "overhead.per_trial"}


def of_events(
    epochs: int, wait: float, epoch: float = 1.0, trials: int = 6, last: float | None = None, told: str = "every_epoch"
) -> Mapping[str, float]:
    """Return what one worker's events give: trials of so many epochs, a wait in each report, 3 s from trial to trial.

    `last`: the wait in a trial's last report, where that is another one. `told`: of which epochs the framework is.
    """
    log, at = Log(), 1.0
    log.step("deploy", 0, 1)
    worker = log.process("worker", 0)
    for number in range(trials):
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
    run = with_metrics(derive(log.pairs(), make_spec(trials=trials, epochs=epochs, workers=Workers(count=1))))
    return {name: one.value for name, one in run.metrics.items() if one.value is not None}


def drawn(metrics: Mapping[str, float]) -> Draw:
    """Return these metrics with a percent of chance."""

    def draw(seed: int) -> Metrics:
        chance = random.Random(f"{sorted(metrics.items())} {seed}")
        return {name: value * (1 + 0.01 * chance.gauss(0, 1)) for name, value in metrics.items()} | {"time.jct": 1e5}

    return draw


def made(deploy: float, further: float = 50.0, *, jct: float = 2000.0, slow: Iterable[int] = (), spread: float = 0.02) -> Draw:
    """Return runs with these ms of deploy and of each trial, which take ten times as much with the `slow` seeds."""

    def draw(seed: int) -> Metrics:
        factor = (1 + spread * random.Random(f"{deploy} {seed}").random()) * (10 if seed in set(slow) else 1)
        reports = {**OF_EPOCHS, "overhead.per_report": 1.0 * factor}
        times = {"time.deploy": deploy * factor, "overhead.further_trial": further * factor, "time.jct": jct}
        return {**dict.fromkeys(PARTS, 100.0), **reports, **times, "overhead.per_trial": further, "trial_execution.median": 100.0}

    return draw


def choice_of(entries: Sequence[Entry], seeds: Sequence[int] = range(10)) -> Choice:
    return answered(results(entries, seeds, questions=QUESTIONS, primary_metric="time.jct")).choice


def added_of(entries: Sequence[Entry], label: str = "optuna", **more: Any) -> Added:
    (row,) = (row for row in choice_of(entries, **more).settings[0].rows if row.label == label)
    return row.first.added


@pytest.mark.parametrize("wait", [0.0, 0.5, 4.0])
def test_a_wait_per_report_is_not_what_a_trial_adds(wait: float) -> None:
    for epochs in (2, 10, 40):
        found = of_events(epochs, wait)
        assert (found["overhead.further_trial"], found["overhead.per_report"]) == pytest.approx((3000, 1000 * wait))
        assert found["overhead.reports"] == epochs


def test_the_script_of_finding_23_predicts_trials_of_200_epochs_from_others_alone() -> None:
    """And a framework that is told once, if at all, adds to 200 epochs what it adds to ten."""
    for told in ("every_epoch", "at_end", "none"):
        of = {epochs: of_events(epochs, wait=0.5, told=told) for epochs in (10, 50, 200)}
        choice = choice_of([Entry("optuna", drawn(metrics), variant={"e": epochs}) for epochs, metrics in of.items()])
        few, more, many = choice_to_json(choice)["settings"][0]["rows"][0]["columns"].values()
        guess, found = predicted([few, more], 200), measured(many)
        assert guess.estimate == pytest.approx(found.estimate, rel=0.03)
        assert guess.low < guess.estimate < guess.high


@pytest.mark.parametrize(("last", "each", "trial"), [(2.0, 0.5, 4.5), (0.5, 0.5, 3.0), (0.0, 0.45, 3.0)])
def test_what_a_trial_s_last_report_waits_more_is_the_trial_s(last: float, each: float, trial: float) -> None:
    """It is the only one of which some frameworks are told; one that waits less makes no part negative."""
    found = of_events(10, wait=0.5, last=last)
    assert (found["overhead.per_report"], found["overhead.further_trial"]) == pytest.approx((1000 * each, 1000 * trial))


@pytest.mark.parametrize(("told", "reports", "each"), [("at_end", 1, 0.5), ("none", 0, None)])
def test_epochs_of_which_the_framework_is_not_told_are_no_reports(told: str, reports: int, each: float | None) -> None:
    for epochs in (10, 200):
        found = of_events(epochs, wait=0.5, told=told)
        assert (found["overhead.reports"], found["overhead.further_trial"]) == pytest.approx((reports, 3000))
        assert found.get("overhead.per_report") == (None if each is None else pytest.approx(1000 * each))


def test_trials_of_10_epochs_predict_those_of_200_by_their_reports() -> None:
    """Of the same trials with 10 epochs 3.6 % were predicted, where 35 % were added: a wait was booked per trial."""
    of = {epochs: of_events(epochs, wait=0.5) for epochs in (10, 50, 200)}
    setting: Setting = choice_of([Entry("optuna", drawn(of[n]), variant={"e": n}) for n in (200, 10, 50)]).settings[0]
    first, *longer = setting.curves[0].lines["optuna"]
    assert [round(present(point.reports)) for point in (first, *longer)] == [10, 50, 200]
    for point in longer:
        assert point.predicted == pytest.approx(point.value.estimate, rel=0.03)
        by_trial = first.value.estimate * first.x / point.x  # the formula of before: as many seconds per trial
        assert point.value.estimate > 3 * by_trial
    assert [point.is_extrapolated for point in longer] == [False, True]


def test_trials_of_one_report_predict_no_other_number_of_reports() -> None:
    """What their one report adds may be what the trial adds."""
    of = [(of_events(1, 0.5, epoch=seconds), seconds) for seconds in (1.0, 4.0)] + [(of_events(20, 0.5), 20.0)]
    setting = choice_of([Entry("optuna", drawn(metrics), variant={"s": seconds}) for metrics, seconds in of]).settings[0]
    _, same, more = setting.curves[0].lines["optuna"]
    assert same.predicted == pytest.approx(same.value.estimate, rel=0.03)
    assert more.predicted is None


def test_a_framework_like_its_baseline_adds_nothing_to_a_job_and_is_not_blamed_for_it() -> None:
    equal = added_of([Entry("serial", made(3000)), Entry("optuna", made(3000)), Entry("ray-tune", made(8000))])
    assert present(equal.per_job).estimate == 0
    assert present(equal.own_per_job).estimate > 3
    assert equal.job_lengths[0].seconds == 0
    more = added_of([Entry("serial", made(3000)), Entry("optuna", made(3000)), Entry("ray-tune", made(8000))], "ray-tune")
    assert present(more.per_job).estimate == pytest.approx(5, rel=0.05)
    assert added_of([Entry("serial", made(3000)), Entry("optuna", made(3000))], "serial").per_job is None


@pytest.mark.parametrize(
    "baseline", [[], [Entry("serial", made(3000), start="forkserver")], [Entry("serial", made(1), emulated=True)]]
)
def test_without_a_baseline_of_the_same_start_and_platform_no_framework_is_blamed(baseline: list[Entry]) -> None:
    entries = [*baseline, Entry("optuna", made(3000)), Entry("ray-tune", made(8000))]
    found = added_of(entries)
    assert (found.per_job, found.job_lengths, found.baseline) == (None, (), None)
    assert present(found.own_per_job).estimate > 3
    (note,) = (note for note in present(choice_of(entries).lengths).notes if "no baseline" in note)
    assert "optuna and ray-tune" in note
    forked = [replace(entry, start="forkserver") for entry in entries if entry.adapter != "serial"]
    assert added_of([Entry("serial", made(1000), start="forkserver"), *forked]).baseline == "serial", "control: the same start"


def test_where_trials_and_job_are_as_long_as_told_together_they_have_five_percent_more() -> None:
    found = added_of([Entry("serial", made(1000)), Entry("optuna", made(4000))])
    trial, job = found.lengths[0].seconds, found.job_lengths[0].seconds
    trials = job / trial  # on one worker
    whole = present(found.per_job).estimate + trials * present(found.per_whole_trial).estimate
    assert whole == pytest.approx(0.05 * job)


def test_disturbed_runs_widen_no_range_and_below_six_quiet_ones_it_is_marked() -> None:
    def of(disturbed: Sequence[int]) -> Added:
        slow = [
            Entry(name, made(deploy, slow=disturbed), disturbed=disturbed)
            for name, deploy in (("serial", 1000), ("optuna", 4000))
        ]
        return added_of(slow)

    quiet, few_disturbed, many_disturbed = of([]), of([0, 1, 2, 3]), of([0, 1, 2, 3, 4])
    for name in ("lengths", "epoch_lengths", "job_lengths"):
        calm, some, many = (getattr(added, name)[0] for added in (quiet, few_disturbed, many_disturbed))
        assert (calm.are_few, some.are_few, many.are_few) == (False, False, True)
        assert some.high < 1.1 * calm.high
        assert many.high > 5 * calm.high, "control: all runs count where too few are undisturbed"
    assert present(few_disturbed.per_trial).n == 6


def test_the_mark_stands_at_the_lengths_that_it_is_of() -> None:
    def marked(*disturbed: int) -> list[str]:
        entries = [Entry("serial", made(1000)), Entry("optuna", made(1200)), Entry("ray-tune", made(8000), disturbed=disturbed)]
        lengths = present(choice_of(entries).lengths)
        assert any("undisturbed" in note for note in lengths.notes) == bool(disturbed[4:])
        return [name for name, *texts in lengths.rows if any("+" in text for text in texts)]

    assert marked(0, 1, 2, 3) == []
    assert marked(0, 1, 2, 3, 4) == ["ray-tune"]


def test_over_conditions_a_range_covers_those_of_all() -> None:
    entries = [Entry("optuna", made(1000, further), variant={"v": further}) for further in (10.0, 100.0, 40.0)]
    (row,) = choice_of(entries).settings[0].rows
    lengths = [column.added.lengths[0] for column in row.columns.values()]
    found = present(covering(lengths))
    assert (found.low, found.high) == (min(one.low for one in lengths), max(one.high for one in lengths))
    assert found.high > 3 * found.low


def test_a_length_is_extrapolated_by_the_framework_s_own_trials_and_jobs() -> None:
    def is_far(job: float) -> bool:
        own = Entry("optuna", made(1500, jct=1000 * job))
        long = Entry("ray-tune", made(1500, jct=1e6))
        return added_of([Entry("serial", made(1000, spread=0)), own, long]).job_lengths[0].is_extrapolated

    assert is_far(1.0), "0.5 s are 2.5 % of 20 s"
    assert not is_far(20 * 1.1 / FURTHEST * 1.2)
