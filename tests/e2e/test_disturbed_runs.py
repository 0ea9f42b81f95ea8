"""A program that works beside real runs is found on those runs, and the runs' own work is never taken for another's."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import burning_workload
from tuneoff.cli.main import main
from tuneoff.cli.selection import overridden_plan
from tuneoff.measure.spans import partition
from tuneoff.measure.stored import read_runs
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import read_samples
from tuneoff.run.execute import PlanRequest, execute
from tuneoff.run.progress import Listener

pytestmark = pytest.mark.slow

RUNS = 3  # beside the second one alone another program works
CPUS = os.cpu_count() or 1
HOGS = math.ceil(CPUS / 4)  # a quarter of all processors at the least
TOLERANCE = 8.0  # points: the run's processes besides its trial, edges between two looks, clock ticks


class HogBesideEverySecondRun(Listener):
    """Starts programs that only work before every second run, and ends them after it."""

    def __init__(self) -> None:
        self.beside: list[str] = []  # ids of the runs
        self._hogs: list[subprocess.Popen[bytes]] = []

    def run_started(self, position: int, total: int, label: str, run_id: str) -> None:
        if position % 2 == 0:
            self.beside.append(run_id)
            loop = [sys.executable, "-c", "while True: pass"]
            self._hogs = [subprocess.Popen(loop, start_new_session=True) for _ in range(HOGS)]

    def run_ended(self, position: int, total: int, label: str, status: str, reason: str | None, seconds: float) -> None:
        self.end()

    def end(self) -> None:
        """End the programs; may be called twice."""
        for hog in self._hogs:
            hog.kill()
            hog.wait()
        self._hogs = []


def test_a_hog_beside_every_second_run_is_found_on_exactly_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(Path(burning_workload.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", folder)
    monkeypatch.syspath_prepend(folder)
    file, results = tmp_path / "x.yaml", tmp_path / "results"
    keys = {
        "workload": {"name": "burning_workload:Burning", "options": {"epoch_seconds": 2.5}},
        "adapters": ["serial"],
        "budget": {"trials": 1, "epochs_per_trial": 1},
        "workers": {"count": 1},
        "seeds": list(range(RUNS)),
        "warm_up": False,
    }
    file.write_text(json.dumps(keys))
    listener = HogBesideEverySecondRun()
    try:
        ends = execute(PlanRequest(plan=overridden_plan(file), results=results, listener=listener))
    finally:
        listener.end()
    assert [end.status for end in ends] == ["done"] * RUNS
    records = {record.run_id: record for record in read_runs(results)}
    assert len(listener.beside) == RUNS // 2
    for run_id, record in records.items():
        share, most = record.metrics[SHARE].value, not_of_the_trial(results / "runs" / run_id / record.execution_id, record)
        assert share is not None
        assert most - TOLERANCE <= share <= most + TOLERANCE  # the trial's own work, a processor all the time, is left out
        is_flagged = DISTURBED in {flag.name for flag in record.flags}
        if run_id in listener.beside:
            assert is_flagged
        elif most <= 8:  # nobody but the trial was at work: elsewhere another program is rightly found too
            assert not is_flagged
    assert main(["verify", str(results)]) == 0
    some = next(iter(records.values()))
    edited = results / "runs" / some.run_id / some.execution_id / "run.json"
    text = json.loads(edited.read_text())
    text["metrics"][SHARE]["value"] += 5.0
    edited.write_text(json.dumps(text, indent=1))
    assert main(["verify", str(results)]) != 0


def not_of_the_trial(folder: Path, record: RunRecord) -> float:
    """Return what the host did in the trial step less the trial's own clock, in % of its processors: other programs at most."""
    samples, step = read_samples(folder), partition(record)["trial"]
    assert samples is not None
    assert step is not None
    assert record.clock is not None
    start, end = (record.clock.start_monotonic_ns + t for t in step)
    inside = [sample for sample in samples.usage if start <= sample.t <= end]
    seconds = (inside[-1].t - inside[0].t) / 1e9
    own = sum(attempt.cpu_ns or 0 for trial in record.trials for attempt in trial.attempts) / 1e9
    own *= seconds / ((end - start) / 1e9)
    return 100 * ((inside[-1].busy_ns - inside[0].busy_ns) / 1e9 - own) / (CPUS * seconds)
