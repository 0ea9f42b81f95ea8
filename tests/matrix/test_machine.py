"""The look at the machine before a run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tuneoff.matrix import machine
from tuneoff.matrix.machine import MachineState, look, notes

QUIET = MachineState(load_1min=0.0, cpu_pressure_percent=0.0, sentinel_ns=20_000_000)


@pytest.mark.parametrize(
    ("now", "names"),
    [
        (QUIET, []),
        (replace(QUIET, cpu_pressure_percent=None), []),
        (replace(QUIET, cpu_pressure_percent=40.0), ["busy_machine"]),
        (replace(QUIET, sentinel_ns=30_000_000), ["machine_drift"]),
        (replace(QUIET, sentinel_ns=15_000_000), ["machine_drift"]),
    ],
)
def test_load_and_drift_are_flagged(now: MachineState, names: list[str]) -> None:
    assert [name for name, _ in notes(now, QUIET)] == names


@pytest.mark.skipif(machine._cpu_waiting_ns() is None, reason="the kernel has no pressure information")
def test_other_programs_on_every_core_show_as_pressure() -> None:
    loop = "print('up', flush=True)\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", loop], stdout=subprocess.PIPE) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        for other in others:
            assert other.stdout is not None
            other.stdout.readline()
        pressure = look().cpu_pressure_percent
        assert pressure is not None
        assert pressure > machine.PRESSURE_LIMIT
    finally:
        for other in others:
            other.kill()
            other.communicate()
