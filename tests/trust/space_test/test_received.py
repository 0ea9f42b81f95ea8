"""What `tuneoff check --space` keeps of several runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tuneoff.trust.space_test import verify


def test_what_any_run_changed_or_failed_at_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (SimpleNamespace(status=status, reason="why", folder=None) for status in ("done", "failed", "done"))
    changes = iter((2, 0, 1))
    monkeypatch.setattr(verify, "_execute", lambda *arguments: next(ends))
    monkeypatch.setattr(verify, "_read", lambda end: ([{}], next(changes)))
    unused: Any = None
    sample = verify.receive(unused, unused, draws=30, seed=0, why="", seeds=3)
    assert (sample.changed, sample.failure) == (3, "the run with seed 1 ended as failed: why")
