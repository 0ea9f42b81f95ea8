"""A workload that uses a stated share of a processor, in the ways in which trials do, and tells by itself what it used."""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import ClassVar

from tuneoff.base.dimension import Categorical
from tuneoff.base.space import Float, SearchSpace
from tuneoff.workload import Configuration, Mode, Scores, TrialSeeds, Workload

EPOCH_SECONDS = 1.0
CHILD_SECONDS = 0.4  # of CPU time
BURN = f"import time\nwhile time.process_time() < {CHILD_SECONDS}: pass\nprint(time.process_time(), flush=True)"
_BLOCK = bytes(1 << 16)


class Duty(Workload):
    """`duty`: share of one processor while it trains. `way`: alone, in two threads, or with a child that ends long before.

    The metric `cpu_seconds` is the truth: by getrusage, and by what a child that nobody waits for said of itself.
    """

    name = "duty"
    metrics: ClassVar[Mapping[str, Mode]] = {"loss": "min", "cpu_seconds": "min"}
    default_metric = "loss"
    default_epochs = 2
    has_state = False

    @classmethod
    def default_space(cls) -> SearchSpace:
        ways = ("alone", "threads", "child", "child left")
        return SearchSpace({"duty": Float(low=0.0, high=1.0), "way": Categorical(choices=ways)})

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._before, self._unwaited = _used(), 0.0
        self._duty, self._way = float(configuration["duty"]), configuration["way"]
        self._left: list[subprocess.Popen[str]] = []

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        until = time.monotonic() + EPOCH_SECONDS
        if self._way == "threads":
            threads = [threading.Thread(target=_keep_busy, args=(until, self._duty, time.thread_time)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        elif self._way != "alone" and epoch == 1:
            self._start_child()
        _keep_busy(until, self._duty, time.thread_time)
        return {}

    def validate(self) -> Mapping[str, float]:
        return {"loss": 0.0, "cpu_seconds": _used() - self._before + self._unwaited}

    def test(self) -> Scores:
        return Scores(values={"test_loss": 0.0})

    def _start_child(self) -> None:
        child = subprocess.Popen([sys.executable, "-S", "-c", BURN], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        said = float(child.stdout.readline())
        if self._way == "child":
            child.wait()
        else:  # stays a zombie, until this process ends
            self._unwaited = said
            self._left.append(child)


def _used() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _keep_busy(until: float, duty: float, clock: Callable[[], float]) -> None:
    """Use `duty` of a processor; hashing lets go of the interpreter's lock, so that threads run beside each other."""
    started, used_before = time.monotonic(), clock()
    while (now := time.monotonic()) < until:
        if clock() - used_before < duty * (now - started):
            hashlib.sha256(_BLOCK).digest()
        else:
            time.sleep(0.005)
