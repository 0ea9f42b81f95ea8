"""`tuneoff report`, and the report at the end of `tuneoff compare`."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from builders.page_folders import folder, specs
from builders.results_folders import write_examples
from command_line import Call
from tuneoff.cli.report import written_report
from tuneoff.errors import ResultsError
from tuneoff.tell.page import report as page_report
from tuneoff.tell.page.report import write_report
from tuneoff.trust.verify.results import verify


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a small results folder."""
    return folder(tmp_path / "results" / "r", specs(["serial", "optuna"], 2))


def test_report_writes_the_same_page_each_time_and_prints_its_path(call: Call, results: Path, tmp_path: Path) -> None:
    path, pages = results / "report" / "report.html", []
    assert call("report", "--output", tmp_path / "else where").code == 0
    assert 'href="../results/r/runs/' in (tmp_path / "else where" / "report.html").read_text()
    for form in ("--text", "--json"):
        assert call("report", results, form).code == 0
    assert not path.parent.exists()
    for _ in range(2):
        answer = call("report")
        assert (answer.code, answer.out, answer.err) == (0, f"{path}\n", "")
        pages.append(path.read_bytes())
    assert pages[0] == pages[1]
    assert pages[0].startswith(b"<!doctype html>")


def test_a_full_disk_is_one_line_and_leaves_the_old_page(call: Call, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_report(results)
    before = path.read_bytes()

    def full(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    answer = call("report", results)
    assert answer.code == 5
    assert "No space left on device" in answer.line
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_report_folder_that_cannot_be_made_is_one_line(call: Call, results: Path) -> None:
    (results / "report").write_text("in the way")
    answer = call("report", results)
    assert answer.code == 5
    assert "report must be a folder, but is a file; put the folder itself there" in answer.line


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ResultsError("the disk is full; free space"), "the disk is full; free space"),
        (ZeroDivisionError("a drawing"), "a fault of tuneoff itself: ZeroDivisionError: a drawing"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_a_report_that_fails_at_the_end_of_a_matrix_is_one_line(
    error: BaseException, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], results: Path
) -> None:
    def fail(results: Path, choice: object = None) -> Path:
        raise error

    monkeypatch.setattr(page_report, "write_report", fail)
    assert written_report(results) is None
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert says in line
    assert "the results are complete; to try again: " in line
    assert f" tuneoff report {results}" in line


def test_a_report_does_not_disturb_verify_and_is_in_no_bundle(tmp_path: Path) -> None:
    from tuneoff.trust.bundle.pack import executions, result_files

    made = write_examples(tmp_path / "r").path
    found = executions(made)
    before = result_files(made, found, checkpoints=True)
    path = write_report(made)
    assert path.is_relative_to(made)
    assert verify(made).is_verified
    assert result_files(made, found, checkpoints=True) == before


EXPERIMENT = {
    "workload": "null",
    "adapters": ["serial"],
    "budget": {"trials": 2, "epochs_per_trial": 1},
    "warm_up": False,
    "power": "none",
}


@pytest.mark.slow
def test_compare_ends_with_the_report_and_the_results(call: Call, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(json.dumps(EXPERIMENT))
    answer = call("compare", "e.yaml", "--output", "x")
    assert answer.code == 0, answer.err
    page, results = map(Path, answer.out.splitlines()[-2:])
    assert (page, results) == (tmp_path / "x" / "report" / "report.html", tmp_path / "x")
    assert page.is_file()
    assert os.listdir(page.parent) == [page.name]
    *told, _, _ = answer.out.strip("\n").splitlines()
    assert call("report", "x", "--text").out.splitlines()[: len(told)] == told  # one answer, told twice
    again = call("compare", "e.yaml", "--output", "x", "--resume", "--no-report", "--json")
    assert again.code == 0
    assert json.loads(again.out)["report"] is None
