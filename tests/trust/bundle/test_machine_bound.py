"""The columns bound to the machine: a ratio in a band, and what excuses one outside of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.bundles import answers, metric, pair_of, record_of, spec_of
from tuneoff.record.run_record import FlagRecord
from tuneoff.trust.bundle.columns import BOUNDS, ReproducedColumn, ReproductionAnswer, RunPair, machine_columns

SPEC = spec_of()


LONG_MS = 10_000.0  # long enough to compare, also at a tenth
ALL_BOUND = {bound.metric: metric(LONG_MS) for bound in BOUNDS}


def bound_pair(ratio: float, sentinel: float = 1.0, **more: Any) -> RunPair:
    flags = tuple(FlagRecord(name=name, text="x") for name in more.pop("flags", ()))
    bundle = record_of(SPEC, metrics=ALL_BOUND)
    here = record_of(SPEC, metrics={bound.metric: metric(LONG_MS * ratio) for bound in BOUNDS}, flags=flags)
    before = {**bundle.environment["machine_before"], "sentinel_ns": round(20_000_000 * sentinel)}
    here = replace(here, environment={**here.environment, "machine_before": before})
    return pair_of(here, bundle, **more)


def bound_answers(pair: RunPair) -> dict[str, str]:
    columns = list(machine_columns(pair))
    assert not any(column.decides for column in columns)
    assert {column.tolerance for column in columns} == {"machine"}
    return answers(columns)


def test_a_ratio_in_the_band_is_reproduced() -> None:
    for ratio in (0.81, 1.0, 1.24):
        assert set(bound_answers(bound_pair(ratio)).values()) == {"REPRODUCED"}


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.metric)
def test_a_ratio_outside_the_band_is_different_on_the_same_machine_without_other_work_alone(bound: Any) -> None:
    for ratio in (bound.band * 1.01, 0.99 / bound.band):
        assert bound_answers(bound_pair(ratio))[bound.metric] == "DIFFERENT"
        assert bound_answers(bound_pair(ratio, flags=["disturbed"]))[bound.metric] == "INCONCLUSIVE"
        assert bound_answers(bound_pair(ratio, same_machine=False))[bound.metric] == "INCONCLUSIVE"
    assert bound_answers(bound_pair(bound.band * 0.99))[bound.metric] == "REPRODUCED"


def test_a_slower_machine_is_scaled_by_its_sentinel() -> None:
    slower = bound_answers(bound_pair(3.0, sentinel=3.0, same_machine=False))
    assert (slower["time.jct"], slower["energy.cpu_seconds"]) == ("REPRODUCED", "REPRODUCED")
    assert slower["memory.peak_rss"] == "INCONCLUSIVE"  # memory does not go with speed
    same = bound_answers(bound_pair(1.0, sentinel=3.0))  # other work: no CPU seconds are lost by it
    assert (same["energy.cpu_seconds"], same["memory.peak_rss"], same["time.jct"]) == ("REPRODUCED", "REPRODUCED", "DIFFERENT")


def test_figures_of_different_meters_are_not_compared() -> None:
    bundle = record_of(SPEC, metrics={"energy.job": metric(100.0, "J", "measured", "rapl")})
    here = record_of(SPEC, metrics={"energy.job": metric(100.0, "J", "estimated", "model")})
    (column,) = (item for item in machine_columns(pair_of(here, bundle)) if item.name == "energy.job")
    assert column.answer is ReproductionAnswer.INCONCLUSIVE
    assert "another meter: estimated, model here, measured, rapl in the bundle" in column.why


def test_a_run_without_a_sentinel_is_not_called_different() -> None:
    pair = bound_pair(9.0)
    bare = replace(pair.here, environment={**pair.here.environment, "machine_before": None})
    assert set(bound_answers(replace(pair, here=bare)).values()) == {"INCONCLUSIVE"}


TIMES = ("time.jct_without_test", "time.jct", "time.deploy", "time.trial", "time.test", "overhead.per_trial")
OF_THE_RUN = ("energy.cpu_seconds", "energy.job", "carbon.job", "cost.job")
JUST_BELOW = 0.999


def column_of(name: str, theirs: float, ours: float, jct_ms: tuple[float, float] = (LONG_MS, LONG_MS)) -> ReproducedColumn:
    """Return a column on the same machine with no sign of other work."""
    bundle, here = (
        record_of(SPEC, metrics={"time.jct": metric(jct), name: metric(value)})
        for jct, value in zip(jct_ms, (theirs, ours), strict=True)
    )
    (column,) = (item for item in machine_columns(pair_of(here, bundle)) if item.name == name)
    return column


def test_every_machine_column_but_memory_has_a_floor() -> None:
    assert {bound.metric for bound in BOUNDS} == {*TIMES, *OF_THE_RUN, "memory.peak_rss"}
    memory = column_of("memory.peak_rss", 1.0, 2.0, jct_ms=(1.0, 1.0))
    assert memory.answer is ReproductionAnswer.DIFFERENT


@pytest.mark.parametrize("name", TIMES)
def test_times_that_are_both_below_half_a_second_are_too_short_to_compare(name: str) -> None:
    for theirs, ours in ((10.44, 48.88), (100.0, 500 * JUST_BELOW), (500 * JUST_BELOW, 100.0), (3.0, 3.0)):
        column = column_of(name, theirs, ours)
        assert column.answer is ReproductionAnswer.INCONCLUSIVE
        assert "too short to compare: both are below 0.5 s" in column.why
    for theirs, ours in ((100.0, 500.0), (500.0, 100.0)):  # one of both at the floor is enough
        column = column_of(name, theirs, ours)
        assert column.answer is ReproductionAnswer.DIFFERENT
        assert column.why.endswith("outside 0.5 to 2 on the same machine with no sign of other work")
    assert column_of(name, 500.0, 500.0).answer is ReproductionAnswer.REPRODUCED


@pytest.mark.parametrize("name", OF_THE_RUN)
def test_energy_and_cost_of_runs_that_are_both_below_two_seconds_are_too_short_to_compare(name: str) -> None:
    short = 2000 * JUST_BELOW
    column = column_of(name, 1.0, 9.0, jct_ms=(short, short))
    assert column.answer is ReproductionAnswer.INCONCLUSIVE
    assert "too short to compare: time.jct of both is below 2 s" in column.why
    for jct_ms in ((2000.0, short), (short, 2000.0)):
        assert column_of(name, 1.0, 9.0, jct_ms=jct_ms).answer is ReproductionAnswer.DIFFERENT
        assert column_of(name, 1.0, 1.0, jct_ms=jct_ms).answer is ReproductionAnswer.REPRODUCED


def test_energy_of_a_run_without_a_known_length_is_not_called_short() -> None:
    bundle, here = (record_of(SPEC, metrics={"energy.job": metric(value)}) for value in (1.0, 9.0))
    here = replace(here, metrics={name: value for name, value in here.metrics.items() if name != "time.jct"})
    (column,) = (item for item in machine_columns(pair_of(here, bundle)) if item.name == "energy.job")
    assert column.answer is ReproductionAnswer.DIFFERENT
