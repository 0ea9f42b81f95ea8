"""The picture of the README: drawn from done runs; a wrong folder is one line."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from builders.event_logs import example_a
from tuneoff.errors import ResultsError
from tuneoff.experiment.plan import Plan
from tuneoff.measure.with_metrics import with_metrics
from tuneoff.record.derive import derive
from tuneoff.record.results_folder import PLAN
from tuneoff.record.run_record import ContinuesRecord
from tuneoff.record.store import write_run

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "picture.py"
Draw = Callable[..., int]


@pytest.fixture
def draw(monkeypatch: pytest.MonkeyPatch) -> Draw:
    """Return a function that runs the script and returns its exit code."""

    def run(*arguments: Path | str) -> int:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        assert isinstance(end.value.code, int)
        return end.value.code

    return run


def write(results: Path, **changes: Any) -> Path:
    """Write one run into a results folder."""
    log, spec = example_a()
    run = replace(with_metrics(derive(log.pairs(), spec)), execution_id="execution", **changes)
    folder = results / "runs" / run.run_id / run.execution_id
    folder.mkdir(parents=True)
    write_run(folder, run)
    (results / PLAN).write_text(json.dumps(Plan(name="worked", path="worked.yaml", runs=()).to_json()))
    return results


def test_done_runs_are_drawn(draw: Draw, tmp_path: Path) -> None:
    assert draw(write(tmp_path / "results"), tmp_path / "time.svg") == 0
    picture = ElementTree.fromstring((tmp_path / "time.svg").read_text())
    _, spec = example_a()
    assert f"{spec.adapter} {spec.experiment.sampler.name}" in [element.text for element in picture]


def test_a_continued_run_has_no_bar(draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = ContinuesRecord(executions=("e",), digest="", finished=("t00000",), begun_again=(), away_ns=1)
    assert draw(write(tmp_path / "results", continues=before), tmp_path / "time.svg") == ResultsError.exit_code
    assert "must hold a run that is done" in capsys.readouterr().err


def test_a_folder_that_cannot_be_drawn_is_one_line(draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = write(tmp_path / "failed", status="failed", reason="planted")
    (tmp_path / "empty").mkdir()
    for results in (tmp_path / "nowhere", tmp_path / "empty", failed):
        assert draw(results, tmp_path / "time.svg") == 5
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert str(results) in error
    assert not (tmp_path / "time.svg").exists()


def test_a_picture_that_cannot_be_written_is_one_line(draw: Draw, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert draw(write(tmp_path / "results"), tmp_path / "nowhere" / "time.svg") == 5
    assert capsys.readouterr().err.count("\n") == 1


def test_missing_arguments_show_the_usage(draw: Draw, capsys: pytest.CaptureFixture[str]) -> None:
    assert draw() == 2
    assert "python benchmarks/picture.py" in capsys.readouterr().err
