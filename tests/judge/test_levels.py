"""How much is enough: what less processor, less memory or fewer trials changes is shown, and nothing where it changes nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from builders.made_results import Entry, results
from corpus.scenarios import TIME, statuses
from tuneoff.judge.answers.answers_json import choice_to_json
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Choice
from tuneoff.judge.choice.choose import choose

pytest.importorskip("scipy")
MEGABYTES = (128.0, 256.0, 512.0, 1024.0)


def chosen(
    key: str,
    levels: Sequence[float],
    slower: Mapping[float, float],
    seeds: int = 10,
    failed: float = 0.0,
    lost: Callable[[float], float] = lambda level: 0.0,
) -> Choice:
    """Return the choice over two frameworks; job times `slower` by level for one of them, and test scores lower by `lost`."""

    def draw(name: str, level: float) -> Callable[[int], dict[str, float]]:
        def by_seed(seed: int) -> dict[str, float]:
            chance = random.Random(f"{name} {level} {seed}")
            times = slower.get(level, 1.0) if name == "optuna" else 1.0
            job = 1000 * times * math.exp(0.01 * chance.gauss(0, 1))
            score = 0.95 - lost(level) + 0.001 * chance.gauss(0, 1)
            return {"time.jct_without_test": job, "time.jct": job, "trial_execution.median": 500.0, "quality.test": score}

        return by_seed

    def state(name: str, level: float) -> dict[str, Any]:
        return {"status": statuses(seeds)} if name == "optuna" and level == failed else {}

    entries = [
        Entry(name, draw(name, level), variant={key: int(level) if key == "budget.trials" else level}, **state(name, level))
        for level in levels
        for name in ("serial", "optuna")
    ]
    return choose(answers(results(entries, range(seeds), **TIME)))


def enough(choice: Choice) -> dict[str, str]:
    (curve,) = [curve for curve in choice.settings[0].curves if curve.enough]
    return dict(curve.enough)


def test_the_least_level_that_makes_no_difference_is_named_with_what_the_next_one_costs() -> None:
    texts = enough(chosen("workers.memory_mb", MEGABYTES, {128: 2.0, 256: 1.5}))
    assert texts["serial"] == "from 128 MB on, the least measured"
    assert texts["optuna"].startswith("from 512 MB on (256 MB: 1.5x (")


def test_a_level_whose_runs_fail_is_not_enough_and_has_no_point() -> None:
    choice = chosen("workers.memory_mb", MEGABYTES, {}, failed=128.0)
    assert enough(choice)["optuna"] == "from 256 MB on (128 MB: failed runs)"
    assert "Enough memory for a worker, by the time of the job: " in " ".join(choice.lines)


def test_what_even_the_last_step_changes_is_shown_to_be_enough_by_no_level() -> None:
    texts = enough(chosen("workers.cpus", (0.25, 0.5, 1.0), {0.25: 4.0, 0.5: 2.0}))
    assert texts["optuna"].startswith("not shown below 1 vCPU (0.5 vCPU: 2.0x (")
    assert texts["serial"] == "from 0.25 vCPU on, the least measured"


def test_fewer_trials_are_enough_where_the_score_is_as_good() -> None:
    texts = enough(chosen("budget.trials", (5, 10, 20, 40), {}, lost=lambda trials: 0.05 if trials < 20 else 0.0))
    assert all(text.startswith("from 20 trials on (10 trials: −0.0") for text in texts.values())


def test_with_few_seeds_what_fails_is_said() -> None:
    choice = chosen("workers.memory_mb", MEGABYTES, {}, seeds=3, failed=256.0)
    assert enough(choice) == {"optuna": "more than 256 MB, with which runs failed"}


def test_with_few_seeds_nothing_is_called_enough_but_the_curve_is_there() -> None:
    choice = chosen("workers.memory_mb", MEGABYTES, {128: 2.0}, seeds=3)
    (curve,) = choice.settings[0].curves
    assert (curve.over, curve.enough) == ("memory", {})
    assert next((point.x, round(point.value.estimate, 1)) for point in curve.lines["optuna"]) == (128.0, 2.0)
    assert choice_to_json(choice)["settings"][0]["curves"][0]["enough"] == {}
