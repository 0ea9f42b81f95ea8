"""The `command` meter: any program that prints `seconds watts` lines, such as one that asks a BMC or a smart plug."""

from __future__ import annotations

import collections
import contextlib
import math
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from tuneoff.base import clock
from tuneoff.base.numbers import DECIMAL
from tuneoff.base.processes import ended
from tuneoff.base.terminal import shown_line
from tuneoff.meter import MeterDescription, MeterError, OptionError, PowerMeter, PowerSample, check_names, number

DOMAIN = "node"
TIMEOUT_SECONDS = 10.0
_MOST_KEPT = 100_000  # lines that nobody has read yet: more than a day at one per second
_STOP_SECONDS = 2.0
_LONGEST_LINE = 1000  # characters: what prints more without an end of line is not a meter
_NUMBERS = re.compile(rf"({DECIMAL})\s+({DECIMAL})")
_MOST_AT_ONCE = 20  # samples that one reading gives: of a program that prints more, lines are taken together


class CommandMeter(PowerMeter):
    """Starts a program, without a shell, and reads its lines while it lives.

    Each line holds `seconds watts`: seconds grow from line to line and may count from any moment; watts are the node's mean power
    since the line before. Options: `command` (a text, split as a shell would, or a list of texts); `timeout_seconds` (10): the
    longest time without a line, the first one included.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.check_options(options)
        self._words = _words(options.get("command"))
        self._timeout = number("command", options, "timeout_seconds", TIMEOUT_SECONDS, least=0.1)
        source = f"command: {shlex.join(self._words)}"
        self.description = MeterDescription(
            kind="measured", source=source, domains=(DOMAIN,), longest_gap_seconds=max(10.0, self._timeout)
        )
        self._lines = _PrintedSamples()
        self._errors: collections.deque[str] = collections.deque(maxlen=1)
        self._is_told = False  # that it ended or stalls
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
        self._lines.arrived.wait(self._timeout)
        if not self._lines.has_any:
            problem = self._lines.first_problem or self._closed() or f"printed no line within {self._timeout:g} s"
            self.close()
            raise MeterError(self._error(problem))

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Refuse wrong options; nothing is started.

        Raises:
            OptionError: there is one.
        """
        check_names("command", options, ("command", "timeout_seconds"))
        _words(options.get("command"))
        number("command", options, "timeout_seconds", TIMEOUT_SECONDS, least=0.1)

    def read(self) -> Sequence[PowerSample]:
        """Return the lines since the last call.

        Raises:
            MeterError: a line is not `seconds watts`, the program ended, or no line comes; each is said once.
        """
        problem = self._lines.take_problem()
        if problem is None and not self._is_told:
            silent = (clock.monotonic_ns() - self._lines.last_ns) / clock.NANOSECONDS
            stalled = f"printed no line for {silent:.0f} s (does it flush each line?)" if silent > self._timeout else None
            problem = self._ended() or stalled
            self._is_told = problem is not None
        if problem is not None:
            raise MeterError(self._error(problem))
        samples = self._lines.take()
        if samples and self._process.poll() is None:
            self._is_told = False
        return samples

    def close(self) -> None:
        """End the program with its process group; may be called twice."""
        for number_, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _STOP_SECONDS)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number_)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                break
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _closed(self) -> str | None:
        """Return how it ended, if it has closed its output: it is about to end, then."""
        if not self._lines.arrived.is_set():
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
        complaint = f"; its error: {self._errors[0]}" if self._errors else ""
        return f"meter command: {self._words[0]!r} {problem}{complaint}; it must print `seconds watts` lines"

    def _read_lines(self, stream: IO[str]) -> None:
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                self._lines.add(line)
        self._lines.arrived.set()  # it ended: nobody needs to wait

    def _read_errors(self, stream: IO[str]) -> None:
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                if printed := shown_line(line):
                    self._errors.append(printed[:200])


class _PrintedSamples:
    """Lines as samples on our clock: the program's first line was printed when it arrived, later ones by its own seconds."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.last_ns = clock.monotonic_ns()
        self.first_problem: str | None = None
        self._problem: str | None = None
        self._has_told = False
        self._seconds = -math.inf
        self._offset_ns: int | None = None
        self._t = 0
        self._taken_ns: int | None = None  # up to when lines were taken
        self._samples: collections.deque[PowerSample] = collections.deque(maxlen=_MOST_KEPT)

    @property
    def has_any(self) -> bool:
        """Tell whether there was a line of numbers."""
        return self._offset_ns is not None

    def add(self, line: str) -> None:
        """Take a line; called by the reading thread."""
        now = clock.monotonic_ns()
        printed = shown_line(line)
        numbers = _NUMBERS.fullmatch(printed)  # stricter than `float`, which also takes `1_000` and digits of any script
        if numbers is None:
            if printed:
                self._note(f"printed {printed[:80]!r}")
            return
        seconds, watts = map(float, numbers.groups())
        if not (math.isfinite(seconds) and math.isfinite(watts) and watts >= 0):
            self._note(f"printed {printed[:80]!r}, but both must be finite and watts >= 0")
        elif seconds <= self._seconds:
            self._note(f"printed {seconds:.15g} s after {self._seconds:.15g} s, but seconds must grow")
        else:
            stamp = round(seconds * clock.NANOSECONDS)
            # a line cannot arrive before it is printed: the least delay seen is the nearest to none
            self._offset_ns = now - stamp if self._offset_ns is None else min(self._offset_ns, now - stamp)
            self._t = max(stamp + self._offset_ns, self._t + 1)
            self._seconds, self.last_ns = seconds, now
            self._samples.append(PowerSample(t=self._t, domain=DOMAIN, watts=watts))
            self.arrived.set()

    def take(self) -> list[PowerSample]:
        """Return the samples since the last call, some of them together where they are many."""
        samples = [self._samples.popleft() for _ in range(len(self._samples))]
        before = self._taken_ns
        if samples:
            self._taken_ns = samples[-1].t
        return samples if len(samples) <= _MOST_AT_ONCE else list(_together(samples, before))

    def take_problem(self) -> str | None:
        """Return what was wrong with a line, once in a program's life."""
        problem, self._problem = self._problem, None
        return problem

    def _note(self, problem: str) -> None:
        if not self.arrived.is_set():
            self.first_problem = problem
            self.arrived.set()
        if not self._has_told:
            self._has_told = True
            self._problem = problem


def _together(samples: Sequence[PowerSample], before_ns: int | None) -> Iterator[PowerSample]:
    """Yield as few samples as one reading may give, with the same energy."""
    if before_ns is None:
        yield samples[0]
        before_ns, samples = samples[0].t, samples[1:]
    size = math.ceil(len(samples) / (_MOST_AT_ONCE - 1))
    for index in range(0, len(samples), size):
        group = samples[index : index + size]
        watt_ns, at = 0.0, before_ns
        for sample in group:
            watt_ns, at = watt_ns + (sample.watts or 0.0) * (sample.t - at), sample.t
        yield PowerSample(t=at, domain=DOMAIN, watts=watt_ns / (at - before_ns))
        before_ns = at


def _words(command: object) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise OptionError(f"meter command: `command` cannot be split into words: {error}; correct its quotes") from error
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words) or not words[0]:
        raise OptionError(f"meter command needs `command`, a text or a list of texts, but got {command!r}; correct power.options")
    return words
