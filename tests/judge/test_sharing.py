"""Jobs at the same time: how much slower they are than one alone, and how fair; an unfair split is shown, and only that."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from builders.made_results import Entry, results
from corpus.scenarios import TIME
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.choice.choice import Choice, Point
from tuneoff.judge.choice.choose import choose
from tuneoff.judge.choice.sharing import FAIRNESS, NOT_TOGETHER, SLOWDOWN, jain, with_sharing

pytest.importorskip("scipy")
EQUAL: Mapping[int, Sequence[float]] = {1: (1.0,), 2: (2.0, 2.0), 4: (4.0, 4.0, 4.0, 4.0)}  # times of a job, by copies


def chosen(
    times: Mapping[int, Sequence[float]] = EQUAL,
    seeds: int = 10,
    *,
    noise: float = 0.01,
    late_ms: int = 0,
    more: Mapping[str, Any] | None = None,
) -> Choice:
    """Return the choice over two frameworks, of which Optuna's jobs take these times, with noise; `late_ms`, `more`: of its last
    copy."""

    def draw(name: str, copy: int, factor: float) -> Callable[[int], dict[str, float]]:
        def by_seed(seed: int) -> dict[str, float]:
            job = 1000 * factor * math.exp(noise * random.Random(f"{name} {copy} {factor} {seed}").gauss(0, 1))
            return {"time.jct_without_test": job, "time.jct": job, "trial_execution.median": 500.0, "quality.test": 0.9}

        return by_seed

    entries = []
    for name in ("serial", "optuna"):
        for count, factors in (times if name == "optuna" else EQUAL).items():
            for copy, factor in enumerate(factors):
                is_last = name == "optuna" and copy == count - 1 > 0
                of_last: dict[str, Any] = {"began_ms": late_ms, **(more or {})} if is_last else {}
                entries.append(Entry(name, draw(name, copy, factor), variant={"copies": count}, copy=copy, **of_last))
    return choose(answers(results(entries, range(seeds), **TIME)))


def points(choice: Choice, metric: str, label: str = "optuna") -> dict[float, Point]:
    (curve,) = [curve for curve in choice.settings[0].curves if curve.metric == metric]
    return {point.x: point for point in curve.lines.get(label, ())}


@pytest.mark.parametrize(
    ("rates", "index"), [((1.0, 1.0, 1.0), 100.0), ((1.5, 0.5), 80.0), ((1.1, 0.9), 100 / 1.01), ((1.0, 1e-9, 1e-9, 1e-9), 25.0)]
)
def test_the_index_is_that_of_jain(rates: Sequence[float], index: float) -> None:
    assert jain(rates) == pytest.approx(index)


def test_jobs_that_share_equally_are_slower_by_their_number_and_fair() -> None:
    choice = chosen()
    for label in ("serial", "optuna"):
        slowdown = {x: point.value.estimate for x, point in points(choice, SLOWDOWN, label).items()}
        assert slowdown == {1: pytest.approx(1.0), 2: pytest.approx(2.0, rel=0.02), 4: pytest.approx(4.0, rel=0.02)}
        assert all(point.value.estimate > 99.9 for point in points(choice, FAIRNESS, label).values())
    told = " ".join(choice.lines)
    assert "Slowdown of a job in its share of the machine, over one with all of it: " in told
    assert "unfair" not in told


def test_an_unfair_split_is_shown_for_the_framework_that_has_it_alone() -> None:
    choice = chosen({**EQUAL, 2: (1.5, 3.0)})
    (line,) = [line for line in choice.lines if line.startswith("Fairness")]
    optuna = next(part for part in line.split(";") if "Optuna" in part or "optuna" in part)
    assert "90.0 % (" in optuna
    assert ", unfair with 2" in optuna
    assert line.count("unfair") == 1
    assert "unfair" not in " ".join(chosen({**EQUAL, 2: (1.5, 3.0)}, 5).lines)  # too few seeds for a claim
    assert points(choice, SLOWDOWN)[2].value.estimate == pytest.approx(2.25, rel=0.02)


def test_no_split_is_called_unfair_by_chance() -> None:
    assert not any("unfair" in " ".join(chosen(EQUAL, seeds).lines) for seeds in (3, 5, 10))
    noisy = chosen(EQUAL, 3, noise=0.3)
    assert points(noisy, FAIRNESS)[4].value.estimate < 97  # rates vary by more than the margin, but not surely
    assert "unfair" not in " ".join(noisy.lines)


def test_a_job_that_failed_beside_others_counts_as_slower_than_any() -> None:
    choice = chosen(more={"status": dict.fromkeys(range(10), "failed")})
    assert set(points(choice, SLOWDOWN)) == {1}


def test_jobs_that_did_not_begin_together_tell_nothing() -> None:
    choice = chosen(late_ms=900)
    assert set(points(choice, SLOWDOWN)) == set(points(choice, FAIRNESS)) == {1}
    rows = with_sharing(choice.settings[0].rows)
    groups = [column.group for row in rows if row.label == "optuna" for column in row.columns.values()]
    assert {reason for group in groups for reason in group.estimate(SLOWDOWN).reasons} == {NOT_TOGETHER}
    assert f"Of jobs at the same time 20 seeds left out: {NOT_TOGETHER}." in choice.lines
    assert "left out" not in " ".join(chosen().lines)
    assert set(points(chosen(late_ms=100), SLOWDOWN)) == {1, 2, 4}  # a tenth of the shortest is together


def test_without_a_job_alone_there_is_nothing_to_be_slower_than() -> None:
    choice = chosen({2: EQUAL[2], 4: EQUAL[4]})
    assert points(choice, SLOWDOWN) == {}
    assert set(points(choice, FAIRNESS)) == {2, 4}  # which needs no such job
    (line,) = [line for line in chosen({4: EQUAL[4]}).lines if line.startswith("Fairness")]
    assert line.count(" with 4") == 2
