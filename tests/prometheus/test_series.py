"""From scraped values to power samples: falls of a counter, units, times."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuneoff_meters.prometheus.meter import power_samples


@pytest.mark.parametrize(
    ("values", "joules", "falls"),
    [
        ([1000.0, 1300.0, 1450.0], [0.0, 300.0, 450.0], 0),  # it counts from the first scrape
        ([262_100.0, 262_140.0, 900.0, 1500.0], [0.0, 40.0, 940.0, 1540.0], 1),  # started again from 0
        ([1_000_000.0, 999_990.0, 1_000_290.0], [0.0, 0.0, 300.0], 1),  # no restart: not a million
        ([1000.0, -5.0, 1300.0], [0.0, 300.0], 0),  # no counter is below 0
    ],
)
def test_a_counter_that_falls_makes_no_energy_that_it_did_not_count(values: list[float], joules: list[float], falls: int) -> None:
    scraped = [(15.0 * number, value) for number, value in enumerate(values)]
    samples, count = power_samples("a/package-0", "joules", scraped, 0.0)
    assert [sample.joules for sample in samples] == joules
    assert count == falls


def test_units_become_joules_and_watts_and_the_servers_clock_this_hosts() -> None:
    ((_, energy), _) = power_samples("gpu-0", "millijoules", [(0, 0.0), (1, 250_000.0)], 0.0)
    assert energy.joules == 250.0
    ((power,), _) = power_samples("node", "microwatts", [(1003.5, 41_500_000.0)], 3.5)
    assert (power.watts, power.joules, power.t) == (41.5, None, 1_000_000_000_000)


@given(st.lists(st.floats(min_value=0, max_value=1e9, allow_nan=False), max_size=30))
def test_energy_never_falls_whatever_the_counter_does(values: list[float]) -> None:
    samples, _ = power_samples("a", "joules", list(enumerate(values)), 0.0)
    assert all((later.joules or 0) >= (earlier.joules or 0) >= 0 for earlier, later in itertools.pairwise(samples))
