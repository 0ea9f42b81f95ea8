"""`tuneoff status`: its figures are those of every other table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders.page_folders import failed, folder, specs
from command_line import Call
from tuneoff.record.metric_value import known
from tuneoff.record.run_record import RunRecord


def timed(run: RunRecord) -> RunRecord:
    return replace(run, metrics={**run.metrics, "time.jct_without_test": known(2000.0, "ms")})


@pytest.mark.parametrize(("count", "median"), [(2, "2.00"), (3, "failed")])
def test_failed_runs_are_worse_than_any_in_its_medians_too(call: Call, tmp_path: Path, count: int, median: str) -> None:
    changes = {seed: failed("failed", "planted") if seed < count else timed for seed in range(5)}
    answer = call("status", folder(tmp_path / "results", specs(["serial"], 5), changes))
    (row,) = re.findall(rf"^.* {5 - count}/5 +(\S+) .*$", answer.out, re.MULTILINE)
    assert row == median
