"""The workload `command`: a program in any language that trains one configuration and prints its metrics after each epoch."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import string
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from tuneoff.base.space import SearchSpace
from tuneoff.errors import ExperimentError, TrialFailedError
from tuneoff.workload import Configuration, Mode, TrialSeeds, Workload

OPTIONS = {"command": ["./train.sh", "{learning_rate}", "{seed}"]}
SEED = "seed"  # what a command may name besides the hyperparameters
_WORDS = 200  # characters of the program's last words
_END_SECONDS = 5.0


class Command(Workload):
    """Option `command`: a program and its arguments, where `{NAME}` is a hyperparameter's value and `{seed}` the trial's seed.

    A line of nothing but `name=number` pairs is an epoch: `train_loss=0.31 validation_accuracy=0.92`. What else the program
    prints goes to the run's log. It is ended when its trial is: after the last epoch, at a stop, at a limit.
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
        self._lines: Iterable[str] = ()

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
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise TrialFailedError(f"{command[0]} cannot be started: {error.strerror}") from error
        assert self._process.stdout is not None
        self._lines = io.TextIOWrapper(self._process.stdout, errors="replace", newline="\n")  # a progress bar's \r ends no line

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        assert self._process is not None
        last = ""
        for line in self._lines:
            metrics = _metrics(line)
            if metrics:
                self._metrics = metrics
                return {}
            print(line, end="", flush=True)
            last = line.strip() or last
        code = self._process.wait()
        raise TrialFailedError(f"the program ended with code {code} after epoch {epoch - 1}{last and f': {last[:_WORDS]}'}")

    def validate(self) -> Mapping[str, float]:
        return self._metrics

    def close(self) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_END_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _metrics(line: str) -> dict[str, float]:
    """Return the pairs of a line of nothing but `name=number`, as a terminal would show it; none for any other line."""
    found = {}
    for word in line.rstrip().rpartition("\r")[2].split():
        name, _, value = word.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            return {}
        if not name.isidentifier():
            return {}
    return found
