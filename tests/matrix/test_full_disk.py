"""A disk that is full when a run's record is to be written: the next command says so, and verify takes it for what it is."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from tuneoff.errors import ResultsError
from tuneoff.experiment.load import load_matrix
from tuneoff.experiment.plan import make_plan
from tuneoff.record.store import read_runs
from tuneoff.run import execute as execution
from tuneoff.run.listener import Silent
from tuneoff.trust.verify.results import verify

pytestmark = pytest.mark.slow

FILE = """
workload: "null"
sampler: random
budget: {trials: 3, epochs_per_trial: 2}
adapters: [serial]
warm_up: false
"""


def from_store(number: int) -> Exception:
    error = ResultsError("run.json cannot be written")
    error.__cause__ = OSError(number, os.strerror(number))
    return error


@pytest.mark.parametrize("is_wrapped", [False, True])
@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOSPC, "the disk was full"), (errno.EDQUOT, "the quota was used up"), (errno.EROFS, "the disk was read-only")],
)
def test_a_run_whose_record_met_a_full_disk_was_not_killed_by_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: str, is_wrapped: bool
) -> None:
    file, results = tmp_path / "one.yaml", tmp_path / "results"
    file.write_text(FILE)
    plan = make_plan(load_matrix(file))

    def full(*arguments: object) -> NoReturn:
        raise from_store(number) if is_wrapped else OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(execution, "finish", full)
        with pytest.raises(ResultsError, match="cannot be written"):
            execution.execute(plan, results, listener=Silent())
    execution.execute(plan, results, listener=Silent(), resume=True)
    cut, done = sorted(read_runs(results), key=lambda record: record.status != "interrupted")
    assert (cut.status, cut.charged) == ("interrupted", "infrastructure")
    assert cut.reason == f"its results folder could not be written: {reason}"
    assert done.status == "done"
    assert verify(results).is_verified
