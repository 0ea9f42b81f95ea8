"""The `command` meter: any program that prints `seconds watts` lines, such as one that asks a BMC or a smart plug."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Annotated, Any

from msgspec import Meta

from tuneoff.base import clock
from tuneoff.base.numbers import DECIMAL
from tuneoff.base.processes import ended
from tuneoff.base.terminal import shown_line
from tuneoff.meter import MeterDescription, MeterError, PowerMeter, PowerSample

DOMAIN = "node"
_STOP_SECONDS = 2.0
_LONGEST_LINE = 1000  # characters: what prints more without an end of line is not a meter
_NUMBERS = re.compile(rf"({DECIMAL})\s+({DECIMAL})")  # stricter than `float`, which also takes `1_000` and digits of any script
_MOST_AT_ONCE = 20  # samples that one reading gives


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """What the experiment file gives."""

    command: Annotated[str, Meta(min_length=1)] | Annotated[list[str], Meta(min_length=1)]  # a text is split as a shell does
    timeout_seconds: Annotated[float, Meta(ge=0.1)] = 10.0  # the longest time without a line, the first one included

    def __post_init__(self) -> None:
        if not self.words:
            raise ValueError(f"`command` must name a program, but got {self.command!r}")

    @property
    def words(self) -> list[str]:
        """The program and its arguments."""
        return shlex.split(self.command) if isinstance(self.command, str) else self.command


class CommandMeter(PowerMeter):
    """Starts a program, without a shell, and reads its lines while it lives.

    Each line holds `seconds watts`: seconds grow from line to line and may count from any moment; watts are the node's mean power
    since the line before. They are counted as energy, so that nothing is lost where a reading gives not every line.
    """

    options_type = CommandOptions

    def __init__(self, options: Mapping[str, Any]) -> None:
        chosen: CommandOptions = self.check_options(options)
        self._words, self._timeout = chosen.words, chosen.timeout_seconds
        source = f"command: {shlex.join(self._words)}"
        self.description = MeterDescription(
            kind="measured", source=source, domains=(DOMAIN,), longest_gap_seconds=max(10.0, self._timeout)
        )
        self._samples: list[PowerSample] = []
        self._seconds, self._joules, self._t = -math.inf, 0.0, 0
        self._offset_ns: int | None = None
        self._arrived, self._last_ns = threading.Event(), clock.monotonic_ns()
        self._problem: str | None = None  # of the first wrong line, until it is reported
        self._has_problem = self._is_stall_reported = False
        self._complaint = ""
        try:
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise MeterError(
                f"meter command: {self._words[0]!r} cannot be started: {error.strerror}; correct `command`"
            ) from error
        assert self._process.stdout is not None  # they are pipes
        assert self._process.stderr is not None
        readers = ((self._read_lines, self._process.stdout), (self._read_errors, self._process.stderr))
        self._threads = [threading.Thread(target=target, args=(stream,), daemon=True) for target, stream in readers]
        for thread in self._threads:
            thread.start()
        self._arrived.wait(self._timeout)
        if self._offset_ns is None:
            problem = self._problem or self._closed() or f"printed no line within {self._timeout:g} s"
            self.close()
            raise MeterError(self._error(problem))

    def read(self) -> Sequence[PowerSample]:
        """Return the lines since the last call, or some of them where they are many.

        Raises:
            MeterError: a line is not `seconds watts`, the program ended, or no line comes; each is said once.
        """
        problem, self._problem = self._problem, None
        if problem is None and not self._is_stall_reported:
            silent = (clock.monotonic_ns() - self._last_ns) / clock.NANOSECONDS
            stalled = f"printed no line for {silent:.0f} s (does it flush each line?)" if silent > self._timeout else None
            problem = self._ended() or stalled
            self._is_stall_reported = problem is not None
        if problem is not None:
            raise MeterError(self._error(problem))
        samples = self._samples[:]
        del self._samples[: len(samples)]  # more may have come meanwhile
        if samples and self._process.poll() is None:
            self._is_stall_reported = False
        return samples[:: -max(1, math.ceil(len(samples) / _MOST_AT_ONCE))][::-1]

    def close(self) -> None:
        """End the program with its process group; may be called twice."""
        for number, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _STOP_SECONDS)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                break
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _closed(self) -> str | None:
        """Return how it ended, if it has closed its output: it is about to end, then."""
        if not self._arrived.is_set():
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        return self._ended() or "closed its output"

    def _ended(self) -> str | None:
        code = self._process.poll()
        if code is None:
            return None
        self._threads[1].join(_STOP_SECONDS)
        return ended(code)

    def _error(self, problem: str) -> str:
        complaint = f"; its error: {self._complaint}" if self._complaint else ""
        rule = "it must print lines of `seconds watts`: seconds that grow, watts >= 0"
        return f"meter command: {self._words[0]!r} {problem}{complaint}; {rule}"

    def _read_lines(self, stream: IO[str]) -> None:
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                if printed := shown_line(line):
                    self._add(printed)
        self._arrived.set()  # it ended: nobody needs to wait

    def _read_errors(self, stream: IO[str]) -> None:
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                self._complaint = shown_line(line)[:200] or self._complaint

    def _add(self, printed: str) -> None:
        """Take a line, on our clock: the first was printed when it arrived, later ones by the program's own seconds."""
        now = clock.monotonic_ns()
        numbers = _NUMBERS.fullmatch(printed)
        seconds, watts = map(float, numbers.groups()) if numbers is not None else (math.nan, math.nan)
        if not (self._seconds < seconds < math.inf and 0 <= watts < math.inf):
            if not self._has_problem:
                after = "" if self._offset_ns is None else f" after {self._seconds:.15g} s"
                self._has_problem, self._problem = True, f"printed {printed[:80]!r}{after}"
            self._arrived.set()
            return
        stamp = round(seconds * clock.NANOSECONDS)
        if self._offset_ns is None:
            self._offset_ns, t = now - stamp, now
        else:  # a line cannot arrive before it is printed: the least delay seen is the nearest to none
            self._offset_ns = min(self._offset_ns, now - stamp)
            self._joules += watts * (seconds - self._seconds)
            t = max(stamp + self._offset_ns, self._t + 1)
        self._t, self._seconds, self._last_ns = t, seconds, now
        self._samples.append(PowerSample(t=t, domain=DOMAIN, joules=self._joules))
        self._arrived.set()
