"""The wait of a pod's program for Katib's collector, over a /proc of the test."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tuneoff_adapters.katib.sidecar import LOOK_SECONDS, MOST_SECONDS, SETTLED_SECONDS, is_beside_others, wait_for_collector

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
    assert proc.wait() == 0.0


def test_a_collector_that_comes_late_is_waited_for_until_it_has_looked(proc: Proc) -> None:
    proc.then[5.0] = proc.add_collector
    assert proc.wait() == pytest.approx(5.0 + SETTLED_SECONDS, abs=2 * LOOK_SECONDS)


def test_a_collector_that_never_comes_is_waited_for_so_long_and_no_longer(proc: Proc) -> None:
    proc.add(OTHER, 0, "/istio-proxy", "sidecar")  # another container of the pod
    proc.add(OTHER + 1, COLLECTOR, "sh", "-c", TRIAL)  # nobody's first process
    assert proc.wait() == pytest.approx(MOST_SECONDS, abs=2 * LOOK_SECONDS)


def test_a_process_that_ends_while_it_is_looked_at_is_none(proc: Proc) -> None:
    proc.add_collector(age=60)
    (proc.folder / str(OTHER)).mkdir()  # its files are gone
    assert proc.wait() == 0.0


def test_without_katib_s_webhook_nothing_is_waited_for(proc: Proc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KATIB_TRIAL_NAME")
    assert proc.wait() == 0.0


@pytest.mark.parametrize(("shell", "parent"), [(PAUSE, 0), (50, 40), (60, 1), (0, 0), (99, None)])
def test_a_shell_that_is_not_a_container_s_first_process_among_others_is_alone(
    proc: Proc, shell: int, parent: int | None
) -> None:
    if parent is not None and shell > 1:
        proc.add(shell, parent, "sh")
    assert not is_beside_others(shell, proc.folder)


def test_a_process_of_this_machine_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATIB_TRIAL_NAME", TRIAL)  # as on `emulated`
    assert not is_beside_others(os.getpid())
