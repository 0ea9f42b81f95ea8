"""How often is sampled."""

from __future__ import annotations

import pytest

from tuneoff.measure.power.reading import FILE_BYTES, LONGEST_SECONDS, Pace


def test_a_short_run_is_sampled_as_asked() -> None:
    assert Pace(0.2, 0.01).interval(0) == 0.2


def test_a_look_that_is_dear_is_taken_more_rarely() -> None:
    pace = Pace(0.2, 0.01)
    for _ in range(100):
        pace.spent(0.004)
    assert pace.interval(0) == pytest.approx(0.4)


def test_the_first_look_does_not_count_as_it_meets_everything_as_new() -> None:
    pace = Pace(0.2, 0.01)
    pace.spent(1.0)
    assert pace.interval(0) == 0.2


def test_the_interval_never_passes_what_counters_allow_nor_falls_below_what_was_asked() -> None:
    assert Pace(0.2, 0.01).interval(100 * FILE_BYTES) == LONGEST_SECONDS
    assert Pace(8.0, 0.01).interval(0) == 8.0


@pytest.mark.parametrize(("line_bytes", "hours"), [(200, 24), (500, 12), (1500, 3)])
def test_a_file_of_a_long_run_stays_below_its_size(line_bytes: int, hours: float) -> None:
    pace, written, elapsed = Pace(0.2, 0.01), 0, 0.0
    while elapsed < hours * 3600:
        written += line_bytes
        elapsed += pace.interval(written)
    assert written < FILE_BYTES
