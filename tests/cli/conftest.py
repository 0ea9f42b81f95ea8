"""Fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders.results_folders import Results, write_examples
from command_line import LEAST, Call, File, caller, forbid_runs, register_fakes, write_file


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Return a function that runs a command in an empty folder and returns its answer."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "")  # a command may add the current folder
    return caller(capsys)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the fakes the only plugins, so that no framework can start, and no run of them either."""
    register_fakes(monkeypatch)
    forbid_runs(monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Return a function that writes an experiment file: a text, or the least experiment with keys replaced."""

    def write(text: str | None = None, **replaced: Any) -> Path:
        return write_file(tmp_path / "experiment.yaml", {**LEAST, **replaced} if text is None else text)

    return write


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Write both worked examples as a results folder that commands find."""
    return write_examples(tmp_path / "results" / "mine")
