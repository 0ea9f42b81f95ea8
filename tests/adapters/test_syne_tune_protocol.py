"""The line that a trial prints, and what Syne Tune's own parser makes of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tuneoff_adapters.syne_tune import reporter

PRINTING_TRIAL = """
import os, subprocess, sys
print("half a line of what is loaded at the start", end="", flush=True)
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.run.trial.run_trial import Decision
from tuneoff_adapters.syne_tune.reporter import PrintedReport

context = TrialContext(run_dir="", execution_id="", workload="", metric="val loss", mode="min", epochs=2, trials=1)
report = PrintedReport(context)
print("[tune-metric]: {never read}")
sys.stdout.flush()
assert report(1, {"val loss": 0.1 + 0.2, "other": 5.0}) is Decision.CONTINUE
subprocess.run(["echo", "a child prints too"], check=True)
report(2, {"val loss": 1e-300})
"""


def test_syne_tune_reads_what_a_trial_prints_and_nothing_else() -> None:
    from syne_tune.report import retrieve

    done = subprocess.run([sys.executable, "-c", PRINTING_TRIAL], capture_output=True, text=True, check=True)
    reports = retrieve(done.stdout.splitlines(keepends=True))
    assert [(report["epoch"], report[reporter.OBJECTIVE]) for report in reports] == [(1, 0.1 + 0.2), (2, 1e-300)]
    assert [report["st_worker_iter"] for report in reports] == [0, 1]
    first, *others = done.stdout.splitlines()
    assert first == "half a line of what is loaded at the start"
    assert [line.startswith("[tune-metric]: {") for line in others] == [True, True]
    assert "never read" in done.stderr
    assert "a child prints too" in done.stderr


def test_the_line_has_the_keys_of_syne_tunes_own_reporter(capsys: pytest.CaptureFixture[str]) -> None:
    from syne_tune import Reporter
    from syne_tune.report import retrieve

    Reporter()(**{reporter.TIME_ATTRIBUTE: 1, reporter.OBJECTIVE: 0.5})
    theirs = capsys.readouterr().out
    ours = reporter.report_line(1, 0.5, timestamp=12.5, worker_seconds=0.25, count=0)
    (their_report,), (our_report,) = retrieve([theirs]), retrieve([ours])
    assert sorted(their_report) == sorted(our_report)
    assert ours.partition("{")[0] == theirs.partition("{")[0]
