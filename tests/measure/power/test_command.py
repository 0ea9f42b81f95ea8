"""The command meter: any program that prints `seconds watts`; ended with its children, and what it does wrong is said once."""

from __future__ import annotations

import itertools
import os
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


def _drive(meter: CommandMeter, samples: int = 0, errors: int = 0) -> tuple[list[float | None], list[str]]:
    """Read until there are so many samples and errors, and return watts and texts; two more reads show that no error is twice."""
    watts: list[float | None] = []
    texts: list[str] = []
    deadline = time.monotonic() + DEADLINE
    left = 2
    while left and time.monotonic() < deadline:
        left -= len(watts) >= samples and len(texts) >= errors
        try:
            watts.extend(sample.watts for sample in meter.read())
        except MeterError as error:
            texts.append(str(error))
    assert not any("\n" in text for text in texts)
    return watts, texts


def _until(count: int, meter: CommandMeter) -> list[PowerSample]:
    samples: list[PowerSample] = []
    deadline = time.monotonic() + DEADLINE
    while len(samples) < count and time.monotonic() < deadline:
        samples.extend(meter.read())
    return samples


def test_lines_that_come_late_keep_their_own_distance(program: Callable[..., CommandMeter]) -> None:
    meter = program("say(0, 5)\ntime.sleep(0.4)\nsay(0.1, 6)\ntime.sleep(60)")
    first, second = _until(2, meter)
    assert second.t - first.t == 100_000_000


@pytest.mark.slow
def test_lines_that_are_too_many_are_taken_together_with_the_same_energy(program: Callable[..., CommandMeter]) -> None:
    lines = 1000
    source = f"for n in range({lines}): say(n / 1000, 100 + 50 * (n % 2)); time.sleep(0.001)"
    meter = program(f"{source}\ntime.sleep(1)\nsay(99, 60)\ntime.sleep(60)")
    deadline = time.monotonic() + 2 * DEADLINE
    taken: list[list[PowerSample]] = []
    while time.monotonic() < deadline and not (taken and taken[-1] and taken[-1][-1].watts == 60):
        time.sleep(0.2)  # as the sampler reads
        taken.append(list(meter.read()))
    assert all(len(samples) <= 20 for samples in taken)
    *samples, last = [sample for samples in taken for sample in samples]
    assert len(samples) < lines / 2
    assert [sample.t for sample in samples] == sorted({sample.t for sample in samples})
    joules = sum((after.watts or 0) * (after.t - before.t) / 1e9 for before, after in itertools.pairwise(samples))
    assert joules == pytest.approx(125 * (samples[-1].t - samples[0].t) / 1e9, rel=0.05)
    assert last.t > samples[-1].t


def test_the_program_ends_with_its_children(program: Callable[..., CommandMeter], tmp_path: Path) -> None:
    source = f"child = subprocess.Popen(['sleep', '60'])\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    meter = program(source + "say(1, 1)\ntime.sleep(60)")
    child = int((tmp_path / "pid").read_text())
    meter.close()
    meter.close()
    until(lambda: not is_alive(child))
    with pytest.raises(MeterError, match="was ended by SIGTERM"):
        meter.read()


def test_a_program_that_stalls_is_said_once(program: Callable[..., CommandMeter]) -> None:
    meter = program("say(1, 1)\ntime.sleep(60)", timeout_seconds=0.5)
    watts, (text,) = _drive(meter, 1, 1)
    assert watts == [1]
    assert "printed no line for" in text


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("'watts: 5'", "printed 'watts: 5'"),
        ("'2 1_000'", "printed '2 1_000'"),
        ("2, -5", "printed '2 -5', but both must be finite and watts >= 0"),
        ("2, 'nan'", "both must be finite"),
        ("0.5, 5", "printed 0.5 s after 1 s, but seconds must grow"),
    ],
)
def test_a_wrong_line_is_said_once_and_left_out(program: Callable[..., CommandMeter], line: str, problem: str) -> None:
    watts, (text,) = _drive(program(f"say(1, 1)\nsay({line})\nsay({line})\nsay(3, 3)\ntime.sleep(60)"), 2, 1)
    assert watts == [1, 3]
    assert problem in text


@pytest.mark.parametrize(
    ("source", "options", "problem"),
    [
        ("sys.exit('no such host')", {}, "ended with exit code 1; its error: no such host"),
        ("say('hello')\ntime.sleep(60)", {}, "printed 'hello'; it must print `seconds watts` lines"),
        ("time.sleep(60)", {"timeout_seconds": 0.3}, "printed no line within 0.3 s"),
    ],
)
def test_a_program_that_is_no_meter_cannot_be_opened(
    program: Callable[..., CommandMeter], source: str, options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(MeterError, match=problem):
        program(source, **options)


def test_a_wrong_command_is_one_line() -> None:
    for command, problem in (
        ("no-such-program 1", "'no-such-program' cannot be started: No such file"),
        ("echo 'open", "cannot be split into words"),
        ([], "needs `command`"),
        (["echo", 1], "needs `command`"),
        (None, "needs `command`"),
    ):
        with pytest.raises(MeterError, match=problem):
            CommandMeter({"command": command})


def test_no_descriptor_is_left_open(program: Callable[..., CommandMeter]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    program("say(1, 1)\ntime.sleep(60)").close()
    assert len(os.listdir("/proc/self/fd")) == before
