"""Whatever a test here does to runs (kills, resumes, limits, faults): their histories stay sound."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tuneoff.base.layout import EVENTS, RECORD, RUNS
from tuneoff.measure.stored import read_run
from tuneoff.record.events.reader import EventLog
from tuneoff.trust.history_check.counterexample import Counterexample
from tuneoff.trust.history_check.rules import check_history


def breaches(folder: Path) -> list[Counterexample]:
    """Return how the runs in a folder break the rules of a sound history."""
    folders = [path.parent for path in sorted(folder.rglob(f"{RUNS}/*/*/{RECORD}"))]
    runs = [(EventLog(run / EVENTS), read_run(run)) for run in folders]
    return [breach for log, run in runs for breach in check_history(log, run.run_spec(), is_done=run.status == "done")]


@pytest.fixture
def broken_rules() -> Callable[[Path], set[str]]:
    """Return a function that names the broken rules: for a test that plants what breaks them."""
    return lambda folder: {breach.rule for breach in breaches(folder)}


@pytest.fixture(autouse=True)
def sound_histories(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Hold every run that the test left in its folder to the rules, where it plants no breach."""
    yield
    if "broken_rules" not in request.fixturenames:
        assert ["\n".join([breach.line, *breach.drawing()]) for breach in breaches(tmp_path)] == []
