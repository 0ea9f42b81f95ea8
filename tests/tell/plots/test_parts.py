"""The parts that decide what is drawn: stretches of a slot, power, the fault matrix, files."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from builders.made_curves import Made, made_results
from builders.results_folders import write_examples
from tell.plots.drawn import draw, view_of
from tuneoff.errors import ResultsError
from tuneoff.judge.answers.compute import answers
from tuneoff.judge.results import read_results
from tuneoff.tell.plots.drawing import Drawing
from tuneoff.tell.plots.drawings import NAMES
from tuneoff.tell.plots.faults import read_faults
from tuneoff.tell.plots.files import remove_others, table, write
from tuneoff.tell.plots.gantt import Piece, stretches
from tuneoff.tell.plots.texts import lines, said, shown, value_text
from tuneoff.tell.plots.view import View


def test_a_short_failure_is_kept_when_a_run_is_thinned() -> None:
    pieces = [Piece(0, "completed", number / 100, number / 100 + 0.0099) for number in range(1000)]
    pieces[500] = Piece(0, "failed", 5.0, 5.0005)
    found = stretches(pieces, 0.05)
    assert len(found) < len(pieces) / 10
    assert [piece.what for piece in found] == ["completed", "failed", "completed"]
    failed = found[1]
    assert failed.start <= 5.0 <= failed.end


def test_an_idle_slot_stays_idle_when_a_run_is_thinned() -> None:
    found = stretches([Piece(0, "completed", 0.0, 1.0), Piece(0, "completed", 3.0, 4.0), Piece(1, "pruned", 0.0, 0.5)], 0.1)
    assert [(piece.slot, round(piece.start, 9), round(piece.end, 9)) for piece in found] == [(0, 0, 1), (0, 3, 4), (1, 0, 0.5)]


def test_names_and_figures_are_shown_whole_or_shortened() -> None:
    assert shown("a\x00b\ud800") == "a\\x00b\\ud800"
    assert (shown("abcdefghij", 5), len(shown("abcdefghij", 5))) == ("ab…ij", 5)
    assert all(len(line) <= 10 for line in lines("averyveryverylongname with more", 10).split("\n"))
    assert [value_text(None), value_text(float("inf")), value_text(3, "trials")] == ["no value", "no value", "3 trials"]
    assert said(["a"] * 50).endswith("and 10 more, which are in the table.")


def test_power_is_of_meters_alone_and_says_its_kind(tmp_path: Path) -> None:
    results = read_results(write_examples(tmp_path / "results").path)
    drawing = draw("power", View.of(results, answers(results)))
    assert drawing is not None
    kinds = {row[2] for row in drawing.rows}
    assert kinds == {"measured"}
    assert str(next(iter(kinds))) in drawing.alternative
    assert all(isinstance(row[4], float) and row[4] >= 0 for row in drawing.rows)
    assert min(float(row[3] or 0) for row in drawing.rows) >= 0
    for file in tmp_path.rglob("power.jsonl"):
        file.unlink()
    assert draw("power", View.of(results, answers(results))) is None


def matrix_file(folder: Path) -> Path:
    runs = [
        {"adapter": adapter, "setting": setting, "fault": fault, "outcome": outcome, "reason": "x", "wasted_seconds": 1.0}
        for adapter, outcome in (("serial", "recovered"), ("optuna", "silently wrong"), ("ray", None))
        for setting in ("defaults", "adapter")
        for fault in ("none", "raise", "one<of>ours")
    ]
    path = folder / "faults.json"
    path.write_text(json.dumps({"about": {}, "runs": runs, "exit_code": 0}))
    return path


def test_a_fault_matrix_beside_the_results_is_drawn(tmp_path: Path) -> None:
    made = made_results(Made(seeds=(0,), trials=1), tmp_path)
    view = View.of(made, answers(made))
    assert draw("faults", view) is None
    matrix_file(tmp_path)
    drawing = draw("faults", view)
    assert drawing is not None
    assert len(drawing.rows) == 18
    assert "optuna, defaults: silently wrong under none, raise, one<of>ours" in drawing.alternative
    assert drawing.svg.count(">wrong<") == 6


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": 3}', '{"runs": [{"adapter": "x"}]}'])
def test_a_damaged_fault_matrix_is_one_line(tmp_path: Path, text: str) -> None:
    path = matrix_file(tmp_path)
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"faults\.json is no fault matrix: .*; write it by: tuneoff faults --json"):
        read_faults(tmp_path)


def test_a_fault_matrix_that_is_nested_too_deep_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "faults.json").write_text("[" * 200_000)
    with pytest.raises(ResultsError, match="nested too deep"):
        read_faults(tmp_path)


def test_a_drawing_is_three_files(tmp_path: Path, several: dict[str, Drawing]) -> None:
    drawing = several["paired"]
    write(drawing, tmp_path / "new" / "plots")
    folder = tmp_path / "new" / "plots"
    assert sorted(path.name for path in folder.iterdir()) == ["paired.csv", "paired.png", "paired.svg"]
    assert (folder / "paired.svg").read_text() == drawing.svg
    with (folder / "paired.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == drawing.columns
    assert len(rows) == 1 + len(drawing.rows)
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ResultsError, match="cannot be made"):
        write(drawing, blocked / "plots")


def test_a_large_run_is_thinned_and_it_is_said() -> None:
    view = view_of(Made(adapters=("serial",), seeds=(0,), trials=1200, epochs=2))
    for name, most in (("gantt", 700), ("learning", 200)):
        drawing = draw(name, view)
        assert drawing is not None
        assert len(drawing.rows) < most
        assert drawing.note
    gantt = draw("gantt", view)
    assert gantt is not None
    assert "failed" in {row[3] for row in gantt.rows}


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1+1", "  =1", "\t=1"])
def test_no_text_of_a_table_is_a_formula(text: str) -> None:
    drawing = Drawing(name="n", question="?", caption="", alternative="", svg="", columns=("a", "b"), rows=((text, -1.5),))
    _, row = csv.reader(table(drawing).splitlines())
    assert row == [f"'{text}", "-1.5"]


def test_files_of_plots_that_are_no_longer_drawn_are_removed_and_no_others(tmp_path: Path, several: dict[str, Drawing]) -> None:
    for name in ("paired", "ecdf"):
        write(several[name], tmp_path)
    (tmp_path / "mine.csv").write_text("a user's own")
    (tmp_path / "ecdf.txt").write_text("a user's own")
    remove_others(tmp_path, ["paired"], NAMES)
    assert {path.name for path in tmp_path.iterdir()} == {"paired.csv", "paired.png", "paired.svg", "mine.csv", "ecdf.txt"}


@pytest.mark.slow
def test_a_home_that_cannot_be_written_costs_no_remark_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import contextlib, sys; from tuneoff.tell.plots.drawings import drawings\n"
        "with contextlib.suppress(AttributeError): next(drawings(None, None))\n"
        "sys.exit('matplotlib' not in sys.modules)"
    )
    environment = {**os.environ, "HOME": "/dev/null/none", "TMPDIR": str(tmp_path)}
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_median_and_pairs_that_are_thinned_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    view = view_of(Made(adapters=("serial", "optuna"), seeds=range(12), trials=6, epochs=2))
    for name in ("anytime", "paired"):
        whole = draw(name, view)
        assert whole is not None
        assert not re.search("more than \\d+ (points|seeds)", whole.note)
        monkeypatch.setattr(f"tuneoff.tell.plots.{name}.MOST_POINTS", 1)
        drawing = draw(name, view)
        assert drawing is not None
        assert re.search("more than 1 (points|seeds)", drawing.note)
        assert len(drawing.rows) < len(whole.rows)


def test_a_plot_of_single_runs_names_them(several: dict[str, Drawing]) -> None:
    for name in ("gantt", "learning"):
        assert {text.partition(",")[0] for text, _ in several[name].runs} >= {"serial", "optuna"}
        assert all(run_id for _, run_id in several[name].runs)


def test_trials_are_counted_in_whole_numbers() -> None:
    drawing = draw("anytime", Made(seeds=(0, 1), trials=8, epochs=2))
    assert drawing is not None
    assert ">2.5<" not in drawing.svg
    assert ">7.5<" not in drawing.svg
