"""From how many workers on utilization is lost, where the knee is, and what grows with the number of trials."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping

import pytest

from builders.made_results import Draw, Entry, Metrics, results
from builders.present import present
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.choice.choice import Choice
from tuneoff.judge.choice.choose import answered
from tuneoff.judge.choice.scaling import limit
from tuneoff.tell.plots.anytime import HEIGHT, WIDTH
from tuneoff.tell.plots.shares import drawn

pytest.importorskip("scipy")
COUNTS = (1, 2, 4, 8, 16, 32, 64)
CEILINGS = {"serial": 1000.0, "optuna": 20.0, "ray-tune": 6.0}  # workers that are kept busy at most


def utilization(ceiling: float, alone: float = 98.0, counts: tuple[int, ...] = COUNTS) -> dict[int, float]:
    """Return what a framework reaches that keeps each worker busy for so many percent of the time, and no more than so many."""
    return {count: min(alone, 100 * ceiling / count) for count in counts}


def choice_of(seconds: tuple[float, ...] = (1.0,), seeds: int = 5, failed: Mapping[str, int] | None = None) -> Choice:
    """Return the choice over workers; `failed`: frameworks whose runs with as many workers fail."""

    def draw(ceiling: float, count: int, length: float) -> Draw:
        def values(seed: int) -> Metrics:
            of = ceiling * length * (1 + 0.02 * random.Random(seed).gauss(0, 1))
            return {
                "slots.utilization": utilization(of)[count],
                "stage.ask": float(count),
                "time.jct": 1000.0,
                "overhead.per_trial": 1.0,
                "trial_execution.median": 1000 * length,
            }

        return values

    entries = [
        Entry(
            name,
            draw(ceiling, count, length),
            variant={"workers.count": count, "budget.trials": 4 * count, "length": length},
            status=dict.fromkeys(range(seeds), "failed") if (failed or {}).get(name) == count else {},
        )
        for length in seconds
        for count in COUNTS
        for name, ceiling in CEILINGS.items()
    ]
    return answered(results(entries, range(seeds), primary_metric="time.jct", questions={"time": "time.jct"})).choice


@pytest.mark.parametrize(("ceiling", "below", "knee"), [(3.0, 4, 3.06), (20.0, 32, 20.4), (0.5, 1, 1.0), (62.0, math.inf, None)])
def test_the_loss_begins_where_a_ceiling_is_and_the_knee_is_there(ceiling: float, below: float, knee: float | None) -> None:
    found = limit([utilization(ceiling)] * 3, 0.95)
    assert (found.below, found.low, found.high, found.measured) == (below, below, below, 64)
    assert (None if found.knee is None else found.knee.estimate) == (knee if knee is None else pytest.approx(knee, rel=0.01))


def test_what_only_one_number_in_the_middle_loses_is_no_limit() -> None:
    dented = {**utilization(1000.0), 8: 60.0}
    assert limit([dented], 0.95).below == math.inf


def test_a_ceiling_that_two_numbers_or_the_last_one_show_alone_is_none() -> None:
    assert limit([utilization(3.0, counts=(1, 16))], 0.95).knee is None
    assert limit([utilization(40.0, counts=(1, 16, 64))], 0.95).knee is None


def test_a_number_of_workers_that_failed_is_lost_but_shows_no_ceiling() -> None:
    assert limit([{1: 100.0, 4: 100.0, 16: 0.0}], 0.95).text == "from 16 workers on"
    assert limit([{1: 100.0, 4: 100.0, 16: 60.0, 64: 0.0}], 0.95).knee is None
    assert limit([{1: 100.0, 4: 100.0, 16: 25.0, 64: 0.0}], 0.95).text == "from 16 workers on (knee 4.0)"


def test_a_seed_without_the_most_workers_does_not_say_that_it_stays_busy_up_to_them() -> None:
    short = {1: 99.0, 4: 98.0}
    assert limit([short, short, {**short, 64: 20.0}], 0.95).text.startswith("from 64 workers on")
    assert limit([short, {**short, 64: 97.0}], 0.95).text == "not up to 64"


def test_seeds_that_differ_give_a_range_and_an_interval() -> None:
    found = limit([utilization(ceiling) for ceiling in (3.0, 5.0, 9.0)], 0.95)
    assert (found.low, found.below, found.high) == (4, 8, 16)
    knee = present(found.knee)
    assert knee.low < knee.estimate < knee.high
    assert found.text.startswith("from 8 workers on (4 to 16 by seed; knee 5.1, ")


def test_the_second_line_of_the_page_says_from_how_many_workers_on_utilization_is_lost() -> None:
    choice = choice_of()
    line = choice.lines[1]
    assert line.startswith("Utilization is below 95 % with trials of 1 s: ")
    for text in ("no framework not up to 64", "optuna from 32 workers on (knee 2", "ray-tune from 8 workers on (knee 6"):
        assert text in line
    over = [(curve.over, curve.metric) for curve in choice.settings[0].curves]
    assert over == [("workers", "slots.utilization"), ("workers", "stage.ask")]


def test_each_trial_length_has_limits_of_its_own() -> None:
    lines = choice_of((1.0, 2.0)).lines
    assert [line.partition(":")[0] for line in lines[1:3]] == [
        f"Utilization is below 95 % with trials of {length} s" for length in (1, 2)
    ]
    assert "ray-tune from 8 workers" in lines[1]
    assert "ray-tune from 16 workers" in lines[2]


def test_workers_whose_runs_fail_are_lost() -> None:
    choice = choice_of(failed={"serial": 64})
    assert "no framework from 64 workers on" in choice.lines[1]


def test_the_plot_has_every_knee_inside_and_json_says_that_a_limit_is_beyond() -> None:
    choice = choice_of()
    plot = next(drawn(choice.settings[0]))
    assert plot.levels[0][1] == "95 %"
    knees = {line.label: line.knee for line in plot.lines}
    assert knees["serial"] is None
    for line in plot.lines:
        assert all(0 <= dot.high <= dot.y <= dot.low <= HEIGHT for dot in line.dots)
        if line.knee is not None:
            assert 0 <= line.knee[0] < line.knee[1] < line.knee[2] <= WIDTH
    assert plot.columns[0] == "1 worker"
    assert len(plot.columns) == len(plot.lines[0].cells) == len(COUNTS) + 1
    limits = json.loads(json.dumps(choice_to_json(choice), allow_nan=False))["settings"][0]["curves"][0]["limits"]
    assert limits["serial"]["below"] is None
    assert limits["serial"]["below_reason_if_null"]
    assert limits["optuna"]["below"] == 32


def test_over_trials_the_ask_and_the_memory_of_each_further_trial_are_told() -> None:
    def draw(trials: int) -> Draw:
        return lambda seed: {
            "stage.ask": known_ms(trials),
            "trials.per_second": 100.0,
            "memory.driver_peak_rss": 80 + trials / 500,
            "memory.tree_peak_rss": 200 + trials / 100,
            "time.jct": 1000.0,
            "trial_execution.median": 0.01,
        }

    def known_ms(trials: int) -> float:
        return 1.0 + trials / 2000

    entries = [
        Entry(name, draw(trials), variant={"budget.trials": trials})
        for trials in (100, 1000, 10000)
        for name in ("serial", "optuna")
    ]
    choice = answered(results(entries, range(3), primary_metric="time.jct", questions={"time": "time.jct"})).choice
    text = "\n".join(choice.lines)
    assert "with 2 workers: no framework 1.1 ms in a job of 100 trials and 6.0 ms in one of 10000; optuna 1.1 ms" in text
    assert "2.0 kB per further trial" in text
    assert "10 kB per further trial" in text


def test_numbers_of_trials_that_are_near_or_go_along_with_the_workers_are_no_curve() -> None:
    def draw(seed: int) -> Metrics:
        return {"stage.ask": 1.0, "trials.per_second": 100.0, "time.jct": 1000.0, "trial_execution.median": 0.01}

    def overs(*variants: Mapping[str, int]) -> list[str]:
        entries = [Entry("optuna", draw, variant=variant) for variant in variants]
        choice = answered(results(entries, range(3), primary_metric="time.jct", questions={"time": "time.jct"})).choice
        return [curve.over for curve in choice.settings[0].curves]

    assert overs({"budget.trials": 100}, {"budget.trials": 1000}) == ["trials", "trials"]
    assert overs({"budget.trials": 100}, {"budget.trials": 200}) == []
    along = [{"budget.trials": 100 * count, "workers.count": count} for count in (1, 16)]
    assert overs(*along) == ["workers", "workers"], "trials take no time: their rate and the ask"
