"""What the tests of `tuneoff faults` share."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Call, caller


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Return a function that runs a command in an empty folder and returns its answer."""
    monkeypatch.chdir(tmp_path)
    return caller(capsys)
