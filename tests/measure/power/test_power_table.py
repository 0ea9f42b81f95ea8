"""Deriving the table: counts, means and quantiles by generation; a pattern that matches everything is refused."""

from __future__ import annotations

import csv
import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks import power_table
from tuneoff.measure.power import generations
from tuneoff.measure.power.generations import GENERATIONS

MILAN, TURIN = "AMD EPYC 7763", "AMD EPYC 9755"


def _file(path: Path, *rows: tuple[str, float, float, int, str]) -> Path:
    """Write results of (CPU, idle watts, full watts, threads, month of publication)."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(power_table.COLUMNS)
        for cpu, idle, full, threads, published in rows:
            writer.writerow([cpu, idle, full, threads, 2, published])
    return path


def _enough(cpu: str, year: int, count: int = 5) -> list[tuple[str, float, float, int, str]]:
    return [(cpu, 50 + number, 200 + number, 100, f"May-{year}") for number in range(count)]


def test_watts_are_per_thread_and_rows_by_generation(tmp_path: Path) -> None:
    rows = [
        *_enough(MILAN, 2022),
        *_enough(TURIN, 2024),
        *_enough("Intel Xeon X5570", 2009),
        ("AMD EPYC 9654", 50, 200, 100, "May-2023"),
    ]
    table = power_table.derive(power_table.read_results(_file(tmp_path / "results.csv", *rows)))
    assert list(table["generations"]) == ["EPYC 7003 (Milan)", "EPYC 9005 (Turin)"]  # one Genoa is too few, Nehalem too old
    assert table["generations"]["EPYC 7003 (Milan)"] == {
        "results": 5,
        "first": 2022,
        "last": 2022,
        "idle_mean": 0.52,
        "full_mean": 2.02,
        "idle": [0.502, 0.52, 0.538],
        "full": [2.002, 2.02, 2.038],
        "dynamic": [1.5, 1.5, 1.5],
        "ratio": [0.3347, 0.3467, 0.3587],  # 0.50 to 0.54 over 1.5, at 5, 50 and 95 %
    }
    assert table["default"]["results"] == 6


def test_the_command_writes_the_table_as_it_ships(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path / "results.csv", *_enough(MILAN, 2023), *_enough(TURIN, 2024))
    assert power_table.main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == power_table.derive(power_table.read_results(path))


def test_a_pattern_that_matches_everything_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    greedy = tuple(
        dataclasses.replace(one, pattern=rf"{one.pattern}|\b$") if one.key == "EPYC 9005 (Turin)" else one for one in GENERATIONS
    )
    monkeypatch.setattr(generations, "GENERATIONS", greedy)
    monkeypatch.setattr(power_table, "GENERATIONS", greedy)
    results = power_table.read_results(_file(tmp_path / "results.csv", *_enough(MILAN, 2022), *_enough(TURIN, 2024)))
    with pytest.raises(ValueError, match=r"must be of one generation, but 'amd epyc 7763' is named by .*Milan.*Turin"):
        power_table.derive(results)


def test_a_pattern_that_takes_what_no_other_has_is_not_plausible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = tuple(dataclasses.replace(one, pattern="opteron|epyc 9") for one in GENERATIONS if one.key == "EPYC 9005 (Turin)")
    monkeypatch.setattr(generations, "GENERATIONS", greedy)
    monkeypatch.setattr(power_table, "GENERATIONS", greedy)
    path = _file(tmp_path / "results.csv", *_enough("AMD Opteron 2384", 2009, 90), *_enough(TURIN, 2024))
    assert power_table.main([str(path)]) == 1
    assert "its pattern matches other CPUs" in capsys.readouterr().err


def test_a_result_with_another_number_of_threads_per_core_was_misread(tmp_path: Path) -> None:
    path = _file(tmp_path / "results.csv", *_enough("Intel Xeon 6780E", 2024, 6))
    text = path.read_text().replace("100,2,May-2024", "100,1,May-2024", 5)
    path.write_text(text)
    assert power_table.derive(power_table.read_results(path))["generations"]["Xeon 6 E-cores (Sierra Forest)"]["results"] == 5


def test_wrong_results_are_refused(tmp_path: Path) -> None:
    path = _file(tmp_path / "results.csv", (MILAN, 200, 100, 10, "May-2022"))
    with pytest.raises(ValueError, match="line 2: `0 < idle < full` must hold"):
        power_table.read_results(path)
    path.write_text("CPU Description,Published\n")
    with pytest.raises(ValueError, match=r"lacks avg\. watts @ active idle"):
        power_table.read_results(path)
