"""Speed-up and efficiency over numbers of workers: failures never raise them, and without a base there are none."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from builders.made_results import Entry, Metrics, results
from corpus.scenarios import statuses
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Point
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.curve import SPEED_UP


def draw(label: str, workers: int) -> Callable[[int], Metrics]:
    def by_seed(seed: int) -> Metrics:
        job = 60_000 / workers * (1 + 0.01 * random.Random(f"{label} {workers} {seed}").gauss(0, 1))
        return {"time.jct": job, "time.jct_without_test": job, "trial_execution.median": 1000.0, "quality.test": 0.9}

    return by_seed


def told(failed: Mapping[int, int]) -> tuple[str, Mapping[str, Sequence[Point]]]:
    """Return the line and the points of ten seeds with 1, 2 and 4 workers; `failed`: runs of optuna, by workers."""
    entries = [
        Entry(label, draw(label, workers), variant={"workers.count": workers}, status=statuses(failures))
        for label in ("serial", "optuna")
        for workers in (1, 2, 4)
        for failures in [failed.get(workers, 0) if label == "optuna" else 0]
    ]
    choice = choose(answers(results(entries)))
    lines = [line for line in choice.lines if line.startswith("Speed-up")]
    points = [curve.lines for curve in choice.settings[0].curves if curve.metric == SPEED_UP]
    return " ".join(lines), points[0] if points else {}


def test_twice_as_many_workers_take_half_the_time() -> None:
    line, points = told({})
    assert line.count("4.0x from 1 to 4 workers, an efficiency of 100 %") == 2
    assert [round(point.value.estimate) for point in points["optuna"]] == [1, 2, 4]


def test_failed_runs_make_it_less() -> None:
    _, points = told({4: 4})
    assert points["optuna"][-1].value.high < 4.2
    assert points["optuna"][-1].value.low < 3


def test_a_framework_with_one_number_of_workers_alone_or_without_the_fewest_has_none() -> None:
    for failed in ({2: 10, 4: 10}, {1: 6}):
        line, _ = told(failed)
        assert line.count("from 1 to 4 workers") == 1
        assert "ptuna" not in line
