"""The command meter: any program that prints `seconds watts`; ended with its children, and what it does wrong is said once."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tuneoff.base.processes import is_alive
from tuneoff.meter import MeterError
from tuneoff.record.samples.schema import PowerSample
from tuneoff_meters.command import CommandMeter
from waiting import until

DEADLINE = 10.0


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., CommandMeter]]:
    """Open a meter on a Python program; closed at the end."""
    opened: list[CommandMeter] = []

    def start(source: str, **options: Any) -> CommandMeter:
        path = tmp_path / "meter.py"
        path.write_text("import sys, time, os, subprocess\ndef say(*words): print(*words, flush=True)\n" + source)
        opened.append(CommandMeter({"command": [sys.executable, str(path)], **options}))
        return opened[-1]

    yield start
    for meter in opened:
        meter.close()


def _drive(meter: CommandMeter, samples: int = 0, errors: int = 0) -> tuple[list[PowerSample], list[str]]:
    """Read until there are so many samples and errors; two more reads show that no error is twice."""
    taken: list[PowerSample] = []
    texts: list[str] = []
    deadline = time.monotonic() + DEADLINE
    left = 2
    while left and time.monotonic() < deadline:
        left -= len(taken) >= samples and len(texts) >= errors
        try:
            taken.extend(meter.read())
        except MeterError as error:
            texts.append(str(error))
    assert not any("\n" in text for text in texts)
    return taken, texts


def test_lines_that_come_late_keep_their_own_distance(program: Callable[..., CommandMeter]) -> None:
    (first, second), _ = _drive(program("say(0, 5)\ntime.sleep(0.2)\nsay(0.1, 6)\ntime.sleep(60)"), 2)
    assert second.t - first.t == 100_000_000
    assert [first.joules, second.joules] == pytest.approx([0, 0.6])


def test_of_lines_that_are_too_many_some_are_given_and_no_energy_is_lost(program: Callable[..., CommandMeter]) -> None:
    meter = program("for n in range(1000): say(n / 1000, 100 + 50 * (n % 2))\nsys.exit()")
    meter._process.wait()
    for thread in meter._threads:
        thread.join()
    meter._is_stall_reported = True  # that it has ended
    samples = meter.read()
    assert 10 <= len(samples) <= 20
    assert [sample.t for sample in samples] == sorted({sample.t for sample in samples})
    assert samples[-1].joules == pytest.approx(0.1 * 500 + 0.15 * 500 - 0.1)
    assert list(meter.read()) == []


def test_the_program_ends_with_its_children(program: Callable[..., CommandMeter], tmp_path: Path) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    source = f"child = subprocess.Popen(['sleep', '60'])\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    meter = program(source + "say(1, 1)\ntime.sleep(60)")
    child = int((tmp_path / "pid").read_text())
    meter.close()
    meter.close()
    until(lambda: not is_alive(child))
    with pytest.raises(MeterError, match="was ended by SIGTERM"):
        meter.read()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_program_that_stalls_is_said_once(program: Callable[..., CommandMeter]) -> None:
    (sample,), (text,) = _drive(program("say(1, 1)\ntime.sleep(60)", timeout_seconds=0.5), 1, 1)
    assert sample.joules == 0
    assert "printed no line for" in text


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("'watts: 5'", "printed 'watts: 5' after 1 s"),
        ("'2 1_000'", "printed '2 1_000' after 1 s"),
        ("2, -5", "printed '2 -5' after 1 s"),
        ("2, 'nan'", "printed '2 nan' after 1 s"),
        ("0.5, 5", "printed '0.5 5' after 1 s; it must print lines of `seconds watts`: seconds that grow, watts >= 0"),
    ],
)
def test_a_wrong_line_is_said_once_and_left_out(program: Callable[..., CommandMeter], line: str, problem: str) -> None:
    samples, (text,) = _drive(program(f"say(1, 1)\nsay({line})\nsay({line})\nsay(3, 3)\ntime.sleep(60)"), 2, 1)
    assert [sample.joules for sample in samples] == [0, 6]
    assert problem in text


@pytest.mark.parametrize(
    ("source", "options", "problem"),
    [
        ("sys.exit('no such host')", {}, "ended with exit code 1; its error: no such host"),
        ("say('hello')\ntime.sleep(60)", {}, "printed 'hello'; it must print lines of `seconds watts`"),
        ("time.sleep(60)", {"timeout_seconds": 0.3}, "printed no line within 0.3 s"),
    ],
)
def test_a_program_that_is_no_meter_cannot_be_opened(
    program: Callable[..., CommandMeter], source: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(MeterError, match=problem):
        program(source, **options)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-such-program 1", "'no-such-program' cannot be started: No such file"),
        ("echo 'open", "No closing quotation"),
        (" ", "`command` must name a program"),
        ([], "`command`: Expected `array` of length >= 1, but got []"),
        (["echo", 1], "`command[1]`: Expected `str`, got `int`"),
    ],
)
def test_a_wrong_command_is_one_line(command: Any, problem: str) -> None:
    with pytest.raises(MeterError, match=re.escape(problem)):
        CommandMeter({"command": command})
