"""The workload `command`: a program in any language that trains one configuration and prints its metrics after each epoch."""

from __future__ import annotations

import contextlib
import io
import os
import re
import select
import signal
import string
import subprocess
import threading
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
_LONGEST_LINE = 1_000_000  # characters: what a program prints without a line end is taken in parts
_TAIL_BYTES = 4096  # of standard error, in which its last line is looked for
_END_SECONDS = 5.0
_PAIR = rf"([^\W\d][\w./-]*)\s*[=:]\s*({DECIMAL})"
_NAMED_NUMBER = re.compile(_PAIR)
_PAIRS = re.compile(rf"{_PAIR}(?:(?:\s*[,;|]\s*|\s+){_PAIR})*\s*[,;|]?")


class Command(Workload):
    """Option `command`: a program and its arguments, where `{NAME}` is a hyperparameter's value and `{seed}` the trial's seed.

    A line of its standard output with nothing but `name=number` pairs, the objective's among them, is an epoch:
    `train_loss=0.31 validation_accuracy=0.92`. What else it prints, and its standard error, goes to the run's log. It is ended
    when its trial is: after the last epoch, at a stop, at a limit. Where it ends with code 0 after an epoch, the training has
    ended.
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
        self._last = ""  # line of its output that is not an epoch

    @classmethod
    def default_space(cls) -> SearchSpace:
        raise ExperimentError("a command has no search space of its own; write `search_space` in the file")

    @classmethod
    def refuse_foreign(cls, options: Mapping[str, Any]) -> str | None:
        return "it starts a program"

    def check_space(self, space: SearchSpace) -> None:
        try:
            used = {name for part in self._command for _, name, _, _ in string.Formatter().parse(part) if name is not None}
        except ValueError as error:
            raise ExperimentError(f"command: {error}; a brace that is no placeholder is written twice") from error
        if SEED in space.dimensions:
            raise ExperimentError(f"command: {SEED!r} is the trial's seed, so no dimension may be named so; choose another name")
        known = {*space.dimensions, SEED}
        if unknown := sorted(used - known):
            rule = f"command may name dimensions and {SEED} in braces, but names {unknown[0]!r}"
            raise ExperimentError(f"{rule}; known: {', '.join(sorted(known))}")
        if unused := sorted(known - used - {SEED}):
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
        output = io.BufferedReader(_UntilItsEnd(self._process, self._process.stdout))
        self._output = io.TextIOWrapper(output, "utf-8", "replace", newline="\n")  # a bar's \r ends no line
        self._reader = threading.Thread(target=self._pass_errors_on, daemon=True)
        self._reader.start()

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        while line := self._output.readline(_LONGEST_LINE):
            shown = shown_line(line)
            metrics = _metrics(shown)
            if metrics and (not self.objective or self.objective in metrics):
                self._metrics = metrics
                return {}
            print(line, end="", flush=True)
            self._last = shown or self._last
        assert self._process is not None
        if self._process.wait() == 0 and epoch > 1:
            raise TrainingEnded
        raise TrialFailedError(self._why_it_ended(epoch - 1))

    def validate(self) -> Mapping[str, float]:
        return self._metrics

    def close(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_END_SECONDS)
        self._output.close()
        if self._reader is not None:
            self._reader.join(_END_SECONDS)

    def _pass_errors_on(self) -> None:
        """Copy standard error to that of this process, which is the run's log."""
        assert self._process is not None
        with _UntilItsEnd(self._process, self._process.stderr) as stream, contextlib.suppress(OSError):
            while some := stream.read(2**16):
                self._errors = (self._errors + some)[-_TAIL_BYTES:]
                os.write(2, some)

    def _why_it_ended(self, epochs: int) -> str:
        assert self._process is not None
        assert self._reader is not None
        code = self._process.wait()
        self._reader.join(_END_SECONDS)
        errors = last_shown(self._errors.decode(errors="replace"))
        last = (errors or self._last if code else self._last or errors)[-_WORDS:]
        ended = f"the program ended with code {code} after epoch {epochs}"
        if code:
            return f"{ended}{last and f': {last}'}"
        example = f"`{self.objective or 'loss'}=0.5`"
        rule = f"an epoch is a line of its output with nothing but names and decimal numbers, as {example}"
        return f"{ended}, but {rule}; its last line: {last!r}; print such a line after each epoch"


class _UntilItsEnd(io.RawIOBase):
    """What a program prints until it ends: what it leaves running may keep its output open, and is not waited for."""

    def __init__(self, process: subprocess.Popen[bytes], stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream, self._process = stream, os.pidfd_open(process.pid)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        output = self._stream.fileno()
        ready = select.select([output, self._process], [], [])[0]
        return os.readv(output, [buffer]) if output in ready else 0

    def close(self) -> None:
        if not self.closed:
            os.close(self._process)
            self._stream.close()
        super().close()


def _metrics(line: str) -> dict[str, float]:
    """Return the pairs of a line of nothing but `name=number`, with blanks, commas, semicolons or bars between; else none."""
    return {name: float(number) for name, number in _NAMED_NUMBER.findall(line)} if _PAIRS.fullmatch(line) else {}
