"""The workload `command`: a program in any language that trains one configuration and prints its metrics after each epoch."""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import select
import signal
import string
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import IO, Any, ClassVar

from tuneoff.base.numbers import DECIMAL
from tuneoff.base.space import SearchSpace
from tuneoff.base.terminal import last_shown, shown_line
from tuneoff.errors import ExperimentError, TrialFailedError
from tuneoff.workload import Configuration, Mode, TrainingEnded, TrialSeeds, Workload

OPTIONS = {"command": ["./train.sh", "{learning_rate}", "{seed}"]}
SEED = "seed"  # what a command may name besides the hyperparameters
_WORDS = 200  # characters of the program's last words
_LOOKED_AT = 500  # characters of a line in which the number of a name is looked for
_LONGEST_LINE = 1_000_000  # characters: what a program prints without a line end is taken in parts
_TAIL_BYTES = 4096  # of standard error, in which its last line is looked for
_END_SECONDS = 5.0  # in which a program ends by itself after its last epoch
_GONE_SECONDS = 5.0  # in which one is gone that was killed
_STOP_SECONDS = 2.0  # in which one ends that is asked to, by SIGTERM
_PAIR = rf"([^\W\d][\w./-]*)\s*[=:]\s*({DECIMAL})"
_NAMED_NUMBER = re.compile(_PAIR)
_PAIRS = re.compile(rf"{_PAIR}(?:(?:\s*[,;|]\s*|\s+){_PAIR})*\s*[,;|]?")


class Command(Workload):
    """Option `command`: a program and its arguments, where `{NAME}` is a hyperparameter's value and `{seed}` the trial's seed.

    A line of its standard output with nothing but `name=number` pairs, the objective's among them, is an epoch:
    `train_loss=0.31 validation_accuracy=0.92`. What else it prints, and its standard error, goes to the run's log. Where it ends
    with code 0 after an epoch, the training has ended. After the last planned epoch it has a moment to end by itself; one that is
    stopped gets SIGTERM; what is left then is killed.
    """

    name: ClassVar[str] = "command"
    metrics: ClassVar[Mapping[str, Mode]] = {}
    default_metric: ClassVar[str] = "validation_accuracy"
    default_epochs: ClassVar[int] = 1
    has_state: ClassVar[bool] = False
    has_test: ClassVar[bool] = False
    default_options: ClassVar[Mapping[str, Any] | None] = OPTIONS

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        command = options.get("command")
        is_list = isinstance(command, list) and bool(command) and all(isinstance(part, str) for part in command)
        if not is_list or set(options) != set(OPTIONS):
            raise ExperimentError(f"command has one option, a list of texts, but got {dict(options)}; write it as {OPTIONS}")
        self._command: list[str] = list(command or ())
        self._metrics: dict[str, float] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._output: io.TextIOWrapper[Any] = io.TextIOWrapper(io.BytesIO())
        self._errors = b""  # the last of standard error
        self._reader: threading.Thread | None = None
        self._program: _UntilItsEnd | None = None
        self._trained = 0  # epochs
        self._last = ""  # line of its output that is not an epoch
        self._nearest = ""  # the last of them with a name and its number, the objective's if there is one

    @classmethod
    def default_space(cls) -> SearchSpace:
        raise ExperimentError("a command has no default search space; write `search_space` in the file")

    @classmethod
    def refuse_foreign(cls, options: Mapping[str, Any]) -> str | None:
        return "it starts a program"

    def check_space(self, space: SearchSpace) -> None:
        try:
            used = {name for part in self._command for _, name, _, _ in string.Formatter().parse(part) if name is not None}
        except ValueError as error:
            raise ExperimentError(f"command: {error}; a brace that is not a placeholder is written twice") from error
        if SEED in space.dimensions:
            raise ExperimentError(f"command: {SEED!r} is the trial's seed, so no dimension may be named so; choose another name")
        names = {*space.dimensions, SEED}
        if unknown := sorted(used - names):
            rule = f"command may name dimensions and {SEED} in braces, but names {unknown[0]!r}"
            raise ExperimentError(f"{rule}; known: {', '.join(sorted(names))}")
        if unused := sorted(names - used - {SEED}):
            raise ExperimentError(f"command must use every dimension, but not {unused[0]!r}; write {{{unused[0]}}} in it")

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        values = {**configuration, SEED: seeds.trial}
        command = [part.format(**values) for part in self._command]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,  # of its own: a progress bar there must not get into a line of its output
                start_new_session=True,
                env={"PYTHONUNBUFFERED": "1", **os.environ},  # a line comes when its epoch ends, in pods too
            )
        except OSError as error:
            raise TrialFailedError(f"{command[0]} cannot be started: {error.strerror}") from error
        self._program = _UntilItsEnd(self._process, self._process.stdout)
        # a bar's \r ends no line
        self._output = io.TextIOWrapper(io.BufferedReader(self._program), "utf-8", "replace", newline="\n")
        self._reader = threading.Thread(target=self._pass_errors_on, daemon=True)
        self._reader.start()

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if self._reaches_an_epoch():
            return {}
        code = self._end()
        if code == 0 and epoch > 1:
            raise TrainingEnded
        assert self._reader is not None
        self._reader.join(_GONE_SECONDS)
        errors = self._errors.decode(errors="replace")
        ended = f"the program ended with code {code} after epoch {epoch - 1}"
        if code:
            last = (last_shown(errors) or self._last)[-_WORDS:]
            raise TrialFailedError(f"{ended}{last and f': {last}'}")
        rule = f"an epoch is a line of its output with nothing but names and decimal numbers, as `{self.objective or 'loss'}=0.5`"
        raise TrialFailedError(f"{ended}, but {rule}; {self._instead(errors)}; print such a line after each epoch")

    def validate(self) -> Mapping[str, float]:
        return self._metrics

    def close(self) -> None:
        if self._process is None or self._program is None:
            return
        if self._process.returncode is None:
            program = self._program
            # its end: by itself, if it has trained all its epochs and trains no further, else by SIGTERM
            if self._trained >= self.planned_epochs > 0:
                program.waits_until(_END_SECONDS)
                if not self._reaches_an_epoch() and not program.has_ended():
                    print(f"the program did not end within {_END_SECONDS:g} s after its last epoch: it is stopped", flush=True)
            if not program.has_ended():
                os.killpg(self._process.pid, signal.SIGTERM)
                program.waits_until(_STOP_SECONDS)
                while self._reaches_an_epoch():
                    pass
            self._end()
        self._output.close()
        if self._reader is not None:
            self._reader.join(_GONE_SECONDS)

    def _reaches_an_epoch(self) -> bool:
        """Pass on what the program prints up to its next epoch; False: it ended before, or `self._program` waits no longer."""
        while line := self._output.readline(_LONGEST_LINE):
            text = shown_line(line)
            metrics = _metrics(text)
            if metrics and (not self.objective or self.objective in metrics):
                self._metrics = metrics
                self._trained += 1
                return True
            print(line, end="", flush=True)
            self._last = text or self._last
            self._nearest = _nearer(text, self._nearest, self.objective)
        return False

    def _end(self) -> int:
        """Kill what is left of it, and return its exit code."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # before it is waited for: its number is not used again
        return self._process.wait(_GONE_SECONDS)

    def _pass_errors_on(self) -> None:
        """Copy standard error to that of this process, which is the run's log."""
        assert self._process is not None
        with _UntilItsEnd(self._process, self._process.stderr) as stream, contextlib.suppress(OSError):
            while chunk := stream.read(2**16):
                self._errors = (self._errors + chunk)[-_TAIL_BYTES:]
                os.write(2, chunk)

    def _instead(self, errors: str) -> str:
        """Return what the program printed in place of an epoch: the line that comes nearest to one, or else its last."""
        if self._nearest:
            return f"the nearest line is {self._nearest[:_WORDS]!r}"
        nearest = ""
        for line in errors.split("\n"):
            nearest = _nearer(shown_line(line), nearest, self.objective)
        if nearest:
            return f"the nearest line is on its standard error: {nearest[:_WORDS]!r}"
        return f"its last line: {(self._last or last_shown(errors))[-_WORDS:]!r}"


class _UntilItsEnd(io.RawIOBase):
    """What a program prints until it ends: what it leaves running may keep its output open, and is not waited for.

    Its end is waited for where it has closed its output before.
    """

    def __init__(self, process: subprocess.Popen[bytes], stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream, self._process = stream, os.pidfd_open(process.pid)
        self._until = math.inf

    def waits_until(self, seconds: float) -> None:
        """Wait no longer than so many seconds from now on."""
        self._until = time.monotonic() + seconds

    def has_ended(self) -> bool:
        return bool(select.select([self._process], [], [], 0)[0])

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        output = self._stream.fileno()
        if output in self._ready([output, self._process]) and (count := os.readv(output, [buffer])):
            return count
        self._ready([self._process])
        return 0

    def _ready(self, descriptors: list[int]) -> list[int]:
        remaining = None if self._until == math.inf else self._until - time.monotonic()
        if remaining is not None and remaining <= 0:  # also where there is always more to read
            return []
        return select.select(descriptors, [], [], remaining)[0]

    def close(self) -> None:
        if not self.closed:
            os.close(self._process)
            self._stream.close()
        super().close()


def _metrics(line: str) -> dict[str, float]:
    """Return the pairs of a line of nothing but `name=number`, with blanks, commas, semicolons or bars between; else none."""
    return {name: float(number) for name, number in _NAMED_NUMBER.findall(line)} if _PAIRS.fullmatch(line) else {}


def _nearer(line: str, than: str, objective: str) -> str:
    """Return a line, if it has the number of a name and comes as near to an epoch as another one; else the other one."""
    names, others = ({name for name, _ in _NAMED_NUMBER.findall(text[:_LOOKED_AT])} for text in (line, than))
    return line if objective in names or (names and objective not in others) else than
