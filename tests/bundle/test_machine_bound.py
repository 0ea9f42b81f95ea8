"""The columns bound to the machine: a ratio in a band, and what excuses one outside of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bundles import metric, pair_of, record_of, spec_of
from tuneoff.bundle.exact import Pair
from tuneoff.bundle.machine_bound import BOUNDS, machine_columns
from tuneoff.bundle.verdict import Answer, Column
from tuneoff.records.model import FlagRecord

SPEC = spec_of()
CPU = "CPU is A here, B in the bundle"


def answers(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name: column.answer.value for column in columns}


ALL_BOUND = {bound.metric: metric(100.0) for bound in BOUNDS}


def bound_pair(ratio: float, sentinel: float = 1.0, **more: Any) -> Pair:
    flags = tuple(FlagRecord(name=name, text="x") for name in more.pop("flags", ()))
    bundle = record_of(SPEC, metrics=ALL_BOUND)
    here = record_of(SPEC, metrics={bound.metric: metric(100.0 * ratio) for bound in BOUNDS}, flags=flags)
    before = {**bundle.environment["machine_before"], "sentinel_ns": 20_000_000 * sentinel}
    here = replace(here, environment={**here.environment, "machine_before": before})
    return pair_of(here, bundle, **more)


def bound_answers(pair: Pair) -> dict[str, str]:
    columns = list(machine_columns(pair))
    assert not any(column.decides for column in columns)
    assert {column.tolerance for column in columns} == {"machine"}
    return answers(columns)


def test_a_ratio_in_the_band_is_reproduced() -> None:
    for ratio in (0.81, 1.0, 1.24):
        assert set(bound_answers(bound_pair(ratio)).values()) == {"REPRODUCED"}


@pytest.mark.parametrize("bound", BOUNDS, ids=lambda bound: bound.metric)
def test_a_ratio_outside_the_band_is_different_on_the_same_quiet_machine_alone(bound: Any) -> None:
    for ratio in (bound.band * 1.01, 0.99 / bound.band):
        assert bound_answers(bound_pair(ratio))[bound.metric] == "DIFFERENT"
        assert bound_answers(bound_pair(ratio, flags=["busy_machine"]))[bound.metric] == "INCONCLUSIVE"
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
    assert column.answer is Answer.INCONCLUSIVE
    assert "another meter: estimated, model here, measured, rapl in the bundle" in column.why


def test_a_run_without_a_sentinel_is_not_called_different() -> None:
    pair = bound_pair(9.0)
    bare = replace(pair.here, environment={**pair.here.environment, "machine_before": None})
    assert set(bound_answers(replace(pair, here=bare)).values()) == {"INCONCLUSIVE"}
