"""The statistical columns: the stated rules, at their edges and over many draws."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from builders.bundles import CPU, VALUES, answers, metric, pair_of, record_of, spec_of
from tuneoff.record.run_record import RunRecord
from tuneoff.trust.bundle.columns import ReproductionAnswer, quality_columns, value_columns

SPEC = spec_of()


def seeds(values: Sequence[float], first: int = 0) -> list[RunRecord]:
    """Return runs of one cell whose seeds reach these qualities."""
    metrics = [{"quality.validation": metric(value, "a"), "quality.test": metric(value, "a")} for value in values]
    return [record_of(spec_of(seed=first + place), metrics=found) for place, found in enumerate(metrics)]


QUALITY: list[tuple[str, list[float], float, str]] = [
    ("equal", [0.9, 0.8], 0.9, "REPRODUCED"),
    ("two seeds tell no spread", [0.9, 0.8], 0.85, "INCONCLUSIVE"),
    ("three seeds, inside", [0.90, 0.91, 0.92], 0.915, "INCONCLUSIVE"),
    ("three seeds, outside", [0.90, 0.91, 0.92], 0.80, "DIFFERENT"),
    ("five seeds, inside", [0.90, 0.91, 0.92, 0.93, 0.94], 0.925, "REPRODUCED"),
    ("five seeds, just inside", [0.90, 0.91, 0.92, 0.93, 0.94], 0.968, "REPRODUCED"),
    ("five seeds, just outside", [0.90, 0.91, 0.92, 0.93, 0.94], 0.9681 + 0.0001, "DIFFERENT"),
    ("no spread at all", [0.5] * 5, 0.51, "DIFFERENT"),
    ("no spread in few", [0.5] * 4, 0.51, "INCONCLUSIVE"),
    ("rounding alone in few", [0.3, 0.1 + 0.2, 0.3], 0.31, "INCONCLUSIVE"),
]


@pytest.mark.parametrize(("case", "theirs", "ours", "answer"), QUALITY, ids=[case[0] for case in QUALITY])
def test_quality_is_held_to_the_spread_of_the_bundles_seeds(case: str, theirs: list[float], ours: float, answer: str) -> None:
    columns = list(quality_columns("a cell", seeds(theirs), seeds([ours])))
    assert answers(columns) == {"quality.validation": answer, "quality.test": answer}
    assert all(column.decides for column in columns)


def test_the_interval_is_that_of_the_mean_of_further_runs() -> None:
    # n = 5, m = 0.92, s = 0.0158114, t(4) = 2.7764: 0.048089 for one run, 0.029447 for four
    one = next(quality_columns("c", seeds([0.90, 0.91, 0.92, 0.93, 0.94]), seeds([0.925])))
    assert "in [0.871911, 0.968089], where 95 % of such runs lie by the bundle's 5 seeds" in one.why
    four = next(quality_columns("c", seeds([0.90, 0.91, 0.92, 0.93, 0.94]), seeds([0.95] * 4)))
    assert four.answer is ReproductionAnswer.DIFFERENT


def test_one_in_twenty_runs_of_the_same_kind_is_outside() -> None:
    generator = random.Random(0)
    outside = 0
    for _ in range(1000):
        *theirs, ours = (generator.gauss(0.9, 0.01) for _ in range(6))
        outside += next(quality_columns("c", seeds_of(theirs), seeds_of([ours]))).answer is ReproductionAnswer.DIFFERENT
    assert 30 <= outside <= 70


def seeds_of(values: Sequence[float]) -> list[RunRecord]:
    """As `seeds`, from two records: they differ in their metrics alone."""
    base = replace(BASE, run_id="0")
    return [replace(base, metrics={"quality.validation": metric(value, "a")}) for value in values]


BASE = record_of(SPEC)


def shifted(by: Sequence[float]) -> RunRecord:
    found = [[value + shift for value in values] for values, shift in zip(VALUES, by, strict=True)]
    return record_of(SPEC, values=found)


@pytest.mark.parametrize(
    ("by", "answer"),
    [
        ((1e-9, -1e-9, 2e-9), "REPRODUCED"),
        ((0.5, 0.5001, 0.5), "DIFFERENT"),
        ((0.3, -0.3, 0.0), "INCONCLUSIVE"),
        ((0.5, 0.5, 0.5), "INCONCLUSIVE"),  # the same gap but for its rounding tells no spread
    ],
)
def test_values_of_equal_configurations_are_held_to_a_margin_on_another_processor(by: Sequence[float], answer: str) -> None:
    (column,) = value_columns(pair_of(shifted(by), numerics=(CPU,)))
    assert (column.answer.value, column.tolerance, column.decides) == (answer, "statistical", True)


def test_equal_values_and_unexcused_ones_have_no_such_column() -> None:
    assert not list(value_columns(pair_of(record_of(SPEC), numerics=(CPU,))))
    assert not list(value_columns(pair_of(shifted((0.1, 0.1, 0.1)))))
