"""From scraped values to power samples: resets, units, merged series, times."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff.meter import MeterError
from tuneoff_meters.prometheus.series import Points, merged, points, samples, scrape_interval, with_times
from tuneoff_meters.prometheus.sources import UNITS

JOULES, WATTS = UNITS["joules"], UNITS["watts"]


def joules(scraped: Sequence[tuple[float, float]]) -> list[float | None]:
    return [sample.joules for sample in samples("a/package-0", scraped, JOULES, 0.0)[0]]


def test_a_counter_counts_from_the_first_scrape() -> None:
    assert joules([(0, 1000.0), (15, 1300.0), (30, 1450.0)]) == [0.0, 300.0, 450.0]


def test_a_counter_that_falls_has_started_again_from_0() -> None:
    found, strange = samples("a/package-0", [(0, 262_100.0), (15, 262_140.0), (30, 900.0), (45, 1500.0)], JOULES, 0.0)
    assert [sample.joules for sample in found] == [0.0, 40.0, 940.0, 1540.0]
    assert strange == ["a/package-0: 1 restarts of the counter; what it lost before each is not counted"]


def test_a_fall_that_is_no_restart_makes_no_energy() -> None:
    found, strange = samples("a/package-0", [(0, 1_000_000.0), (15, 999_990.0), (30, 1_000_290.0)], JOULES, 0.0)
    assert [sample.joules for sample in found] == [0.0, 0.0, 300.0]  # not a million
    assert "no restart" in strange[0]


def test_units_become_joules_and_watts() -> None:
    (_, energy), _ = samples("gpu-0", [(0, 0.0), (1, 250_000.0)], UNITS["millijoules"], 0.0)
    assert energy.joules == 250.0
    ((power,), _) = samples("node", [(0, 41_500_000.0)], UNITS["microwatts"], 0.0)
    assert power.watts == 41.5
    assert power.joules is None


def test_values_below_0_are_left_out_and_said() -> None:
    found, strange = samples("node", [(0, -1.0), (1, 5.0)], WATTS, 0.0)
    assert [sample.watts for sample in found] == [5.0]
    assert strange == ["node: 1 values below 0, which were left out"]


def test_the_servers_clock_is_turned_into_this_hosts() -> None:
    ((sample,), _) = samples("node", [(1003.5, 5.0)], WATTS, 3.5)
    assert sample.t == 1_000_000_000_000


@given(st.lists(st.floats(min_value=0, max_value=1e9, allow_nan=False), max_size=30))
def test_energy_never_falls_whatever_the_counter_does(values: list[float]) -> None:
    found = joules(list(enumerate(values)))
    assert None not in found
    assert all(later >= earlier >= 0 for earlier, later in itertools.pairwise(value or 0.0 for value in found))


def test_values_are_placed_at_the_times_at_which_they_were_scraped() -> None:
    labels = {"instance": "a", "index": "0"}
    answer = [
        {
            "metric": {"__name__": "x", **labels, "tuneoff_part": "value"},
            "values": [[10, "5"], [11, "5"], [12, "7"], [13, "NaN"]],
        },
        {"metric": {**labels, "tuneoff_part": "time"}, "values": [[10, "8.25"], [11, "8.25"], [12, "11.5"], [13, "12.5"]]},
    ]
    later = [
        {"metric": {"__name__": "x", **labels, "tuneoff_part": "value"}, "values": [[14, "9"]]},
        {"metric": {**labels, "tuneoff_part": "time"}, "values": [[14, "13.5"]]},
    ]
    (found,) = points([answer, later])
    assert found.labels == {"__name__": "x", **labels}
    assert found.values == {8.25: 5.0, 11.5: 7.0, 13.5: 9.0}


def test_a_value_that_is_no_number_is_told() -> None:
    with pytest.raises(MeterError, match="pairs of time and number"):
        points([[{"metric": {}, "values": [[1, "x"]]}]])


def test_series_of_one_counter_are_merged_in_order_of_time() -> None:
    with_pod, without = Points({"pod": "a"}, {2.0: 20.0, 3.0: 30.0}), Points({}, {1.0: 10.0, 3.0: 30.0, 4.0: 40.0})
    assert merged([with_pod, without]) == [(1.0, 10.0), (2.0, 20.0), (3.0, 30.0), (4.0, 40.0)]


def test_the_scrape_interval_is_that_of_the_slowest_series() -> None:
    assert scrape_interval([[0, 15, 30, 45.5], [0, 60, 120], [7]]) == 60
    assert scrape_interval([[7], []]) is None


def test_a_query_may_end_in_a_comment() -> None:
    assert "# why\n)" in with_times("sum(x) # why")
