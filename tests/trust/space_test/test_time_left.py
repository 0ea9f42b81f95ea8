"""What `tuneoff check --space` tells while it draws, and what it keeps of several runs."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tuneoff.trust.space_test import verify
from tuneoff.trust.space_test.draw import DRAWN, Drawing


def test_after_the_first_draws_it_is_told_how_long_the_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    ticks = itertools.count(0.0, 60.0)
    drawing = Drawing(state=DRAWN, configurations=[{}] * 100)
    monkeypatch.setattr(verify, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    monkeypatch.setattr(verify, "draw_in_process", lambda *arguments, **more: drawing)
    target: Any = SimpleNamespace(run=SimpleNamespace(spec=None), label="slow")
    unused: Any = None
    verify.draw_sample(target, unused, 400, 0, 1.0, told.append, unused)
    assert told == [
        "slow: drawing, seed 1 of 4",
        "slow: drawing, seed 2 of 4; about 4 min left for it",
        "slow: drawing, seed 3 of 4; about 3 min left for it",
        "slow: drawing, seed 4 of 4; about 2 min left for it",
        "slow: drawing, the first seed again",
    ]


def test_what_any_run_changed_or_failed_at_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = (SimpleNamespace(status=status, reason="why", folder=None) for status in ("done", "failed", "done"))
    changes = iter((2, 0, 1))
    monkeypatch.setattr(verify, "_execute", lambda *arguments: next(ends))
    monkeypatch.setattr(verify, "_read", lambda end: ([{}], next(changes)))
    unused: Any = None
    sample = verify.receive(unused, unused, draws=30, seed=0, why="", seeds=3)
    assert (sample.changed, sample.failure) == (3, "the run with seed 1 ended as failed: why")
