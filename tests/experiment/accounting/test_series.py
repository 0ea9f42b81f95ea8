"""A carbon-intensity series: times with zones, order, what a row says of how long it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.refusals import refusal
from tuneoff.experiment.accounting.resolve import read_series

HOUR = 3_600_000_000_000
MAY = 1_777_593_600_000_000_000  # 2026-05-01T00:00:00Z in ns


def write(folder: Path, *rows: str, header: str = "time,g_per_kwh") -> Path:
    path = folder / "grid.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def test_a_value_holds_until_the_next_row_and_the_last_as_long_as_the_one_before_it(tmp_path: Path) -> None:
    series = read_series(write(tmp_path, "2026-05-01T00:00:00Z,100", "2026-05-01T01:00:00Z,300", "2026-05-01T03:00:00Z,50.5"))
    assert (series.kind, series.values) == ("series", (100.0, 300.0, 50.5))
    assert series.times == (MAY, MAY + HOUR, MAY + 3 * HOUR)
    assert series.end == MAY + 5 * HOUR
    assert series.source == "grid.csv"
    assert series.mean(MAY, MAY + 3 * HOUR) == pytest.approx((100 + 2 * 300) / 3)
    assert series.mean(MAY + 4 * HOUR, MAY + 5 * HOUR) == 50.5
    assert series.mean(MAY + 4 * HOUR, MAY + 5 * HOUR + 1) is None
    assert series.mean(MAY - 1, MAY + HOUR) is None


def test_zones_are_told_apart_and_a_clock_that_is_set_back_loses_no_hour(tmp_path: Path) -> None:
    rows = [
        "2026-10-25T01:30:00+02:00,1",
        "2026-10-25T02:30:00+02:00,2",
        "2026-10-25T02:30:00+01:00,3",
        "2026-10-25T03:30:00+01:00,4",
    ]
    series = read_series(write(tmp_path, *rows))
    assert [later - earlier for earlier, later in zip(series.times, series.times[1:], strict=False)] == [HOUR] * 3
    utc = read_series(write(tmp_path, "2026-10-24T23:30:00Z,1", "2026-10-25T00:30:00Z,2"))
    assert utc.times == series.times[:2]


def test_columns_may_be_in_either_order_and_lines_may_be_empty_or_begin_with_a_mark(tmp_path: Path) -> None:
    path = tmp_path / "grid.csv"
    path.write_bytes(
        "\ufeffg_per_kwh, time\r\n100, 2026-05-01T00:00:00.000001Z\r\n\r\n ,\r\n200, 2026-05-01T01:00:00Z\r\n".encode()
    )
    series = read_series(path)
    assert series.values == (100.0, 200.0)
    assert series.times[0] == MAY + 1000


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["2026-05-01T01:00:00Z,1", "2026-05-01T00:00:00Z,2"], "line 3: times must increase, but 2026-05-01T00:00:00Z is not"),
        (["2026-05-01T01:00:00Z,1", "2026-05-01T03:00:00+02:00,2"], "line 3: times must increase"),
        (["2026-05-01T01:00:00,1"], "line 2: a time must be ISO 8601 with its zone, in the years 1970 to 2099, e.g. "),
        (["0001-01-01T00:00:00+23:00,1"], "line 2: a time must be ISO 8601"),
        (["9999-12-31T23:00:00-10:00,1"], "line 2: a time must be ISO 8601"),
        (
            ["yesterday,1"],
            "a time must be ISO 8601 with its zone, in the years 1970 to 2099, e.g. 2026-05-01T13:00:00+02:00, but got",
        ),
        *(
            ([f"2026-05-01T01:00:00Z,{value}"], f"line 2: g_per_kwh must be a number from 0 to 100000, but got '{value}'")
            for value in ("1e308", "", "much", "-1", "nan", "inf")
        ),
        (["2026-05-01T01:00:00Z,1,2"], "line 2: a row must have 2 cells"),
        (["2026-05-01T01:00:00Z"], "line 2: a row must have 2 cells"),
        (["2026-05-01T01:00:00Z,1"], "a series needs at least two rows"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, rows: list[str], message: str) -> None:
    said = refusal(read_series, write(tmp_path, *rows))
    assert message in said
    assert said.startswith(str(tmp_path / "grid.csv"))


@pytest.mark.parametrize("header", ["", "time", "time,g_per_kwh,zone", "2026-05-01T01:00:00Z,1"])
def test_other_columns_are_refused(tmp_path: Path, header: str) -> None:
    said = refusal(read_series, write(tmp_path, "2026-05-01T01:00:00Z,1", header=header))
    assert "line 1: the columns must be time,g_per_kwh, but got" in said


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(read_series, tmp_path / "none.csv")
    (tmp_path / "bytes.csv").write_bytes(b"time,g_per_kwh\n\xff\n")
    assert "must be UTF-8 text, but byte 15 is not" in refusal(read_series, tmp_path / "bytes.csv")
