"""The metrics collector in a trial's pod, and the file that it reads."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tuneoff_adapters.katib import pod
from tuneoff_adapters.katib.manifest import METRICS_FORMAT
from tuneoff_adapters.katib.pod import (
    LOOK_SECONDS,
    MOST_SECONDS,
    SETTLED_SECONDS,
    FileReport,
    is_beside_others,
    report_line,
    wait_for_collector,
)

TRIAL = "r0123456789abcdef-012345-x7k2m9qp"
PAUSE, SHELL, POD, COLLECTOR, OTHER = 1, 7, 8, 21, 30
TICKS = os.sysconf("SC_CLK_TCK")
UP_SECONDS = 1000.0


class Proc:
    """A folder like /proc, whose time passes with `sleep`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seconds = folder, 0.0
        self.then: dict[float, Callable[[], None]] = {}
        self._tell_time()
        self.add(PAUSE, 0, "/pause")
        self.add(SHELL, 0, "sh", "-c", f"python -m tuneoff_adapters.katib.pod {TRIAL} && echo completed", age=0.5)
        self.add(POD, SHELL, "python", "-m", "tuneoff_adapters.katib.pod", TRIAL)

    def add(self, pid: int, parent: int, *arguments: str, age: float = 100.0) -> None:
        folder = self.folder / str(pid)
        folder.mkdir()
        started = round((UP_SECONDS + self.seconds - age) * TICKS)
        (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} {'0 ' * 17}{started} 0 0\n")
        (folder / "cmdline").write_bytes("".join(f"{argument}\0" for argument in arguments).encode())

    def add_collector(self, age: float = 0.0) -> None:
        self.add(COLLECTOR, 0, "./file-metricscollector", "-t", TRIAL, "-m", "objective", age=age)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self._tell_time()
        for moment in [moment for moment in self.then if moment <= self.seconds]:
            self.then.pop(moment)()

    def wait(self) -> float:
        return wait_for_collector(TRIAL, SHELL, self.folder, self.sleep)

    def _tell_time(self) -> None:
        (self.folder / "uptime").write_text(f"{UP_SECONDS + self.seconds:.2f} 0.00\n")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    monkeypatch.setenv("KATIB_TRIAL_NAME", TRIAL)
    return Proc(tmp_path)


def test_a_collector_that_has_long_begun_is_not_waited_for(proc: Proc) -> None:
    proc.add_collector(age=60)
    (proc.folder / str(OTHER)).mkdir()  # of a process that ends while it is looked at: its files are gone
    assert proc.wait() == 0.0


def test_a_collector_that_comes_late_is_waited_for_until_it_has_looked(proc: Proc) -> None:
    proc.then[5.0] = proc.add_collector
    assert proc.wait() == pytest.approx(5.0 + SETTLED_SECONDS, abs=2 * LOOK_SECONDS)


def test_a_collector_that_never_comes_is_waited_for_so_long_and_no_longer(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    proc.add(OTHER, 0, "/istio-proxy", "sidecar")  # another container of the pod
    proc.add(OTHER + 1, COLLECTOR, "sh", "-c", TRIAL)  # nobody's first process
    assert proc.wait() == pytest.approx(MOST_SECONDS, abs=2 * LOOK_SECONDS)
    monkeypatch.delenv("KATIB_TRIAL_NAME")  # without Katib's webhook nothing is waited for
    assert proc.wait() == 0.0


@pytest.mark.parametrize(("shell", "parent"), [(PAUSE, 0), (50, 40), (60, 1), (0, 0), (99, None)])
def test_a_shell_that_is_not_a_container_s_first_process_among_others_is_alone(
    proc: Proc, shell: int, parent: int | None
) -> None:
    if parent is not None and shell > 1:
        proc.add(shell, parent, "sh")
    assert not is_beside_others(shell, proc.folder)
    assert not is_beside_others(os.getpid())  # a process of this machine, as on `emulated`


def test_a_clock_that_stands_still_or_goes_back_gives_rising_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    moments = [datetime.fromisoformat("2026-01-01T12:00:00.000005Z")] * 2
    moments.append(moments[0] - timedelta(hours=1))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moments.pop(0)

    monkeypatch.setattr(pod, "datetime", Clock)
    report = FileReport(str(tmp_path / "metrics.log"), "loss")
    for epoch in (1, 2, 3):
        report(epoch, {"loss": 0.5})
    lines = (tmp_path / "metrics.log").read_text().splitlines()
    assert [line.split()[0][-8:] for line in lines] == [".000005Z", ".000006Z", ".000007Z"]


@pytest.mark.parametrize("value", [0.1 + 0.2, -1e-300, 1e22, 5e-324, 0.0, 123456789.0, float("nan"), float("inf")])
def test_katibs_own_pattern_reads_a_report_bit_for_bit_and_none_would_stop_the_experiment(value: float) -> None:
    if not math.isfinite(value):
        with pytest.raises(ValueError, match="finite"):
            report_line(datetime.now(), value)
        return
    line = report_line(datetime.fromisoformat("2026-01-01T12:00:00Z"), value)
    ((name, text, *_),) = re.findall(METRICS_FORMAT, line.split(" ", 1)[1])
    assert name == "objective"
    assert float(text) == value
