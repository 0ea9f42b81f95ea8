from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.event_logs import run_a
from tuneoff.record.run_record import DeclaredVariable, RunRecord
from tuneoff.tell.report.declared import declared_json, declared_rows, mismatches, text


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return run_a()


def having(run: RunRecord, declared: Any, found: Any, agrees: bool | None = True, symbol: str = "wmem") -> RunRecord:
    variable = DeclaredVariable(
        symbol=symbol, name="memory per worker", declared=declared, found=found, unit="MB", agrees=agrees, how="because"
    )
    return replace(run, declared=(variable,))


def test_what_all_runs_share_is_told_once_with_numbers_as_ranges(run: RunRecord) -> None:
    runs = [
        (name, having(run, 2000.0, {"limit": "watchdog", "peak_rss_mb": peak})) for name, peak in (("a", 350.0), ("b", 400.5))
    ]
    assert list(declared_rows(runs)) == [
        ("wmem", "memory per worker", "2000", "limit watchdog, peak_rss_mb 350–400.5", "MB", "yes", "all")
    ]


def test_runs_that_differ_have_their_own_rows(run: RunRecord) -> None:
    runs = [("a", having(run, 1, {"n": 1})), ("b", having(run, 1, {"n": 3}, False)), ("c", having(run, 1, {"n": 1}))]
    rows = list(declared_rows(runs))
    assert [(row[5], row[6]) for row in rows] == [("yes", "a; c"), ("NO", "b")]
    assert mismatches(runs) == ["b: wmem (memory per worker): because"]


def test_the_seeds_of_one_cell_are_told_together(run: RunRecord) -> None:
    names = ("a random seed 0", "b random seed 0", "a random seed 1")
    runs = [(name, having(run, 1, {"n": 1}, name[0] == "a")) for name in names]
    assert [row[6] for row in declared_rows(runs)] == ["a random seeds 0, 1", "b random seed 0"]


def test_a_number_that_some_runs_lack_makes_no_row_of_its_own(run: RunRecord) -> None:
    runs = [(str(peak), having(run, 1, {"peak_pss_mb": peak})) for peak in (3.0, None, 5.0)]
    assert [row[3] for row in declared_rows(runs)] == ["peak_pss_mb 3–5"]


def test_one_file_is_one_file() -> None:
    assert text({"a.bin": "0" * 64}).startswith("1 file (")
    assert text({"a.bin": "0" * 64, "b.bin": None}).startswith("2 files (")


def test_what_nothing_can_tell_is_neither_yes_nor_no(run: RunRecord) -> None:
    assert next(declared_rows([("a", having(run, None, None, None))]))[2:6] == ("–", "–", "MB", "–")


def test_values_are_short_and_digests_are_cut() -> None:
    assert text({"sha256": "0123456789abcdef" * 4, "url": None, "n": 1.5}) == "sha256 0123456789ab..., n 1.5"
    files = {"images": "0123456789abcdef" * 4, "labels": None}
    assert text(files).startswith("2 files (")
    assert text(files).endswith("... together, 1 of them unreadable)")
    assert text(["cpu", "gpu"]) == "cpu, gpu"
    assert text((1, 1)) == "1"
    assert text({"options": {}}) == "–"


def test_the_json_has_whole_values(run: RunRecord) -> None:
    digest = "0123456789abcdef" * 4
    (variable,) = declared_json(having(run, {"sha256": digest}, None))
    assert variable["declared"] == {"sha256": digest}
    assert set(variable) == {"symbol", "name", "declared", "found", "unit", "agrees", "how"}
