"""A run folder and small workloads for tests of the trial, without any framework."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tuneoff.base.space import Float, SearchSpace
from tuneoff.errors import CheckpointError
from tuneoff.experiment.trial_context import TrialContext
from tuneoff.record.events import schema
from tuneoff.record.events.reader import EventLog
from tuneoff.run.trial.run_trial import Decision, Report, TrialOutcome, run_trial
from tuneoff.workload import Configuration, Mode, Scores, StateTensor, TrainingEnded, TrialSeeds, Workload


class Curve(Workload):
    """Loss = x / epoch; keeps state, so that checkpoints are written.

    `nan_at`: the epoch whose loss is not a number; `last`: the training ends by itself after it.
    """

    name = "curve"
    metrics: ClassVar[Mapping[str, Mode]] = {"loss": "min"}
    default_metric = "loss"
    default_epochs = 3

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"x": Float(low=0.0, high=1.0)})

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        if configuration.get("fail") == "load":
            raise ValueError("no data\nsecond line")
        self.x, self.epoch = float(configuration["x"]), 0

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch > self.options.get("last", epoch):
            raise TrainingEnded
        self.epoch = epoch
        if self.options.get("memory_error_at") == epoch:
            raise MemoryError
        return {"train_loss": 2 * self.x}

    def validate(self) -> Mapping[str, float]:
        if self.options.get("ends_in_validate"):
            raise TrainingEnded
        if self.options.get("nan_at") == self.epoch:
            return {"loss": float("nan")}
        rises = self.options.get("rises", False)
        return {"loss": self.x * self.epoch if rises else self.x / self.epoch}

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return {"x": StateTensor(dtype="F64", shape=(1,), data=struct.pack("<d", self.x))}, {"note": "curve"}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        (self.x,) = struct.unpack("<d", tensors["x"].data)

    def test(self) -> Scores:
        return Scores(values={"test_loss": self.x})


def trial_context(run_dir: Path, **changes: Any) -> TrialContext:
    """Return a written context; the execution id is unique per call, since a process keeps one state per execution."""
    values: dict[str, Any] = {
        "run_dir": str(run_dir),
        "execution_id": f"test-{os.urandom(4).hex()}",
        "workload": "trial_runs:Curve",
        "metric": "loss",
        "mode": "min",
        "epochs": 3,
        "trials": 10,
    }
    context = TrialContext(**{**values, **changes})
    context.write()
    return context


def events_of(run_dir: Path, kind: type[schema.Event] = schema.Event) -> Iterator[Any]:
    """Yield the events of a run folder in time order, of one kind or all."""
    for _, event in EventLog(run_dir / "events").merged():
        if isinstance(event, kind):
            yield event


def go_on(epoch: int, metrics: Mapping[str, float]) -> Decision:
    return Decision.CONTINUE


def run(context: TrialContext, trial: str = "t0", x: float = 0.6, report: Report = go_on, **identity: Any) -> TrialOutcome:
    """Run a trial of one hyperparameter; `identity`: `attempt` and the like of `run_trial`."""
    return run_trial(context, trial, {"x": x}, report, **identity)


class Walk(Curve):
    """Loss = a sum of random steps: it goes on alike only from its whole state. `falls`: the last epoch that improves it."""

    restores_training = True

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self.random, self.total = random.Random(seeds.trial), 0.0

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch > self.options.get("last", epoch):
            raise TrainingEnded
        self.epoch = epoch
        self.total += self.random.random()
        return {"odd": math.inf, "trained_by": epoch}

    def validate(self) -> Mapping[str, float]:
        return {"loss": self.total if self.epoch > self.options.get("falls", 99) else -self.total}

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return {}, {"walk": json.dumps([self.random.getstate(), self.total])}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        (version, words, following), self.total = json.loads(texts["walk"])
        if self.options.get("refuses"):
            raise CheckpointError("it was written on another kind of device")
        self.random.setstate((version, tuple(words), following))


class LosesChild(Curve):
    """Fails in its first epoch; before that the kernel ends a child of it in the control group `group`, if there is one."""

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if "group" in self.options:
            (Path(self.options["group"]) / "memory.events").write_text("oom_kill 3\n")
        raise BrokenPipeError("a worker process has died")


class OddScores(Curve):
    """Its test gives scores that are no finite numbers, as F1 does of a class that does not occur."""

    def test(self) -> Scores:
        odd = {"test_f1": float("nan"), "test_ratio": float("-inf")}
        return Scores(values={"test_loss": self.x, **odd}, details={"per_class": [{"f1": float("nan"), "support": 0}]})


class WithChild(Curve):
    """Each epoch has a process of its own that uses `cpu_seconds` and is waited for."""

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        script = f"import time\nwhile time.process_time() < {self.options['cpu_seconds']}: pass"
        subprocess.run([sys.executable, "-c", script], check=True)
        return super().train_epoch(epoch)


STATES: dict[str, object] = {"empty": ({}, {}), "none": None, "{}": {}, "a dict": {"weights": b"", "bias": b""}, "one": ({},)}


class Forgetful(Curve):
    """Says that it has state, as every workload that does not deny it, and returns what the option `state` is: none."""

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        return STATES[self.options["state"]]  # type: ignore[return-value]


class LeavingTest(Curve):
    """Its test leaves a process that keeps the test's output open, and notes its pid."""

    def test(self) -> Scores:
        with open(self.options["note"], "w") as file:
            file.write(str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid))
        print("tested", file=sys.stderr)
        return super().test()


class BrokenTest(Curve):
    """Fails in its test, after a warning."""

    def test(self) -> Scores:
        raise ValueError("no test split")


def default_signals() -> None:
    """Take signals as a command in a terminal does, for `preexec_fn`: a shell has those of its background commands ignore two."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
