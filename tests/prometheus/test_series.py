"""From scraped values to power samples: resets, units, merged series, times."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tuneoff.record.samples.schema import PowerSample
from tuneoff_meters.prometheus.meter import Domain, Reading


def samples(
    domain: str, scraped: Sequence[tuple[float, float]], unit: str = "joules", offset: float = 0.0
) -> tuple[list[PowerSample], list[str]]:
    return Domain(domain, Reading(query="x", domain=str, unit=unit), list(scraped)).samples(offset)


def joules(scraped: Sequence[tuple[float, float]]) -> list[float | None]:
    return [sample.joules for sample in samples("a/package-0", scraped)[0]]


def test_a_counter_counts_from_the_first_scrape() -> None:
    assert joules([(0, 1000.0), (15, 1300.0), (30, 1450.0)]) == [0.0, 300.0, 450.0]


def test_a_counter_that_falls_has_started_again_from_0() -> None:
    found, strange = samples("a/package-0", [(0, 262_100.0), (15, 262_140.0), (30, 900.0), (45, 1500.0)])
    assert [sample.joules for sample in found] == [0.0, 40.0, 940.0, 1540.0]
    assert strange == ["a/package-0: 1 restarts of the counter; what it lost before each is not counted"]


def test_a_fall_that_is_no_restart_makes_no_energy() -> None:
    found, strange = samples("a/package-0", [(0, 1_000_000.0), (15, 999_990.0), (30, 1_000_290.0)])
    assert [sample.joules for sample in found] == [0.0, 0.0, 300.0]  # not a million
    assert "without a restart" in strange[0]


def test_units_become_joules_and_watts() -> None:
    (_, energy), _ = samples("gpu-0", [(0, 0.0), (1, 250_000.0)], "millijoules")
    assert energy.joules == 250.0
    ((power,), _) = samples("node", [(0, 41_500_000.0)], "microwatts")
    assert power.watts == 41.5
    assert power.joules is None


def test_values_below_0_are_left_out_and_said() -> None:
    found, strange = samples("node", [(0, -1.0), (1, 5.0)], "watts")
    assert [sample.watts for sample in found] == [5.0]
    assert strange == ["node: 1 values below 0, which were left out"]


def test_the_servers_clock_is_turned_into_this_hosts() -> None:
    ((sample,), _) = samples("node", [(1003.5, 5.0)], "watts", 3.5)
    assert sample.t == 1_000_000_000_000


@given(st.lists(st.floats(min_value=0, max_value=1e9, allow_nan=False), max_size=30))
def test_energy_never_falls_whatever_the_counter_does(values: list[float]) -> None:
    found = joules(list(enumerate(values)))
    assert None not in found
    assert all(later >= earlier >= 0 for earlier, later in itertools.pairwise(value or 0.0 for value in found))
