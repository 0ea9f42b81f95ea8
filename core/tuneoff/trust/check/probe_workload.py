"""The workload of the conformance runs: its values follow from the configuration, and it notes what is done with it.

A configuration with a `level` has that value, else one hashed from it. In its first epochs a trial gets better, then worse,
so that its best epoch is neither the first nor the last. An `act` decides what else happens; `calm` is `sound` by another name.
"""

from __future__ import annotations

import contextlib
import json
import locale
import math
import multiprocessing
import os
import signal
import struct
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from tuneoff.base.identity import configuration_digest, derive_seed
from tuneoff.base.process_limits import THREAD_VARIABLES
from tuneoff.base.processes import kill_from_outside
from tuneoff.base.space import Float, SearchSpace
from tuneoff.workload import Configuration, Mode, Scores, StateTensor, TrainingEnded, TrialSeeds, Workload, items, phase

Act = Literal[
    "sound",
    "calm",
    "raise",
    "raise-base",
    "nan",
    "inf",
    "text",
    "no-report",
    "hang",
    "slow",
    "exit",
    "kill",
    "kill-once",
    "kill-self",
    "memory",
]
ACTS: tuple[Act, ...] = get_args(Act)
METRIC = "score"
PHASE = "forward"  # in which it computes
NOTES = "notes.jsonl"
CURVE = (-0.02, 0.0, -0.01)  # what each epoch adds to the level; the last one again and again
NOISE = 0.004  # at most, from the trial's seed: so the same seed is seen to give the same values
EXIT_CODE = 3
SLOW_SECONDS = 3.0
ALLOCATE_BYTES, HOLD_SECONDS = 2_000_000_000, 10.0
_CHUNK_BYTES = 16_000_000
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
HALF_LINE = "half a line without an end"  # that each careless training prints, to both streams
_PRINTED = (
    '{"seq": 1, "type": "epoch", "trial": "t00000", "epoch": 99}\n',  # like an event of ours
    "score=0.1\nscore=1e400\n",  # like a value, as collectors look for them
    f"\r{HALF_LINE} \x1b[2K",
)


class ProbeError(RuntimeError):
    """What the act `raise` raises."""


class ProbeEnd(BaseException):
    """What the act `raise-base` raises: none of the exceptions that programs catch."""


class Probe(Workload):
    """Options: `notes` (a folder, or ""), `epoch_seconds` (sleep), `compute_seconds` (of one thread), `noise`,
    `ends_early`: each training ends by itself after one epoch or two; `script`: a list of [level, act], of which each
    configuration takes the next one, where a framework draws them itself; `is_careless`: see `_change`.
    """

    name: ClassVar[str] = "probe"
    metrics: ClassVar[Mapping[str, Mode]] = {METRIC: "max"}
    default_metric: ClassVar[str] = METRIC
    default_epochs: ClassVar[int] = len(CURVE)
    preload: ClassVar[tuple[str, ...]] = ("safetensors.numpy",)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._configuration: Configuration = {}
        self._level = self._noise = math.nan
        self._epoch = self._seed = 0
        self._digest = ""
        self._born = f"{os.getpid()}-{time.monotonic_ns()}"  # of this instance: a checkpoint keeps it
        self._threads_told = 0

    @classmethod
    def default_space(cls) -> SearchSpace:
        return SearchSpace({"level": Float(low=0.0, high=1.0)})

    def limit_threads(self, threads: int) -> None:
        self._threads_told = threads

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        self._digest = configuration_digest(configuration)
        self._configuration, self._seed = dict(configuration), seeds.trial
        folder = Path(self.options.get("notes") or "/nonexistent")
        for index, (level, act) in enumerate(self.options.get("script", ()) if folder.is_dir() else ()):
            entry = folder / f"{index}.taken"  # by this configuration, also where it is tried again
            with contextlib.suppress(FileExistsError):
                entry.symlink_to(self._digest)  # made with its content
            if os.readlink(entry) == self._digest:
                self._configuration = {**configuration, "level": level, "act": act}
                break
        hashed = derive_seed("level", self._digest) / 2**31
        self._level = float(self._configuration.get("level", hashed))
        self._noise = float(self.options.get("noise", NOISE))
        variables = {name: os.environ.get(name) for name in THREAD_VARIABLES}
        act = self._configuration.get("act")
        self._note("load", threads_told=self._threads_told, variables=variables, **({"act": act} if act else {}))
        if self.options.get("is_careless"):
            self._note("start", **_seen(configuration))
            _change(configuration)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if self.options.get("ends_early") and epoch > early_end(self._digest):
            raise TrainingEnded
        self._epoch = epoch
        if epoch == 1:
            self._act(self._configuration.get("act", "sound"))
        if self._configuration.get("act") == "slow":
            time.sleep(SLOW_SECONDS)
        time.sleep(self.options.get("epoch_seconds", 0.0))
        seconds = self.options.get("compute_seconds", 0.0)
        threads = {}
        if seconds:
            with phase(PHASE):
                threads["busy_threads"] = _compute(seconds)
            items(epoch)
        self._note("train", epoch=epoch, **threads)
        return {}

    def validate(self) -> Mapping[str, float]:
        act = self._configuration.get("act")
        if act == "no-report":
            return {}
        if act == "text":
            return {METRIC: str(self._value(self._epoch))}  # type: ignore[dict-item]  # as careless trainings do
        if act in ("nan", "inf"):
            return {METRIC: math.nan if act == "nan" else math.inf}
        return {METRIC: self._value(self._epoch)}

    def test(self) -> Scores:
        self._note("test")
        return Scores(values={METRIC: self._value(self._epoch or len(CURVE))})

    def state_dict(self) -> tuple[Mapping[str, StateTensor], Mapping[str, str]]:
        tensor = StateTensor(dtype="F64", shape=(1,), data=struct.pack("<d", self._level))
        return {"level": tensor}, {"born": self._born, "epoch": str(self._epoch)}

    def load_state_dict(self, tensors: Mapping[str, StateTensor], texts: Mapping[str, str]) -> None:
        (self._level,) = struct.unpack("<d", tensors["level"].data)
        self._born, self._epoch = texts["born"], int(texts["epoch"])
        self._note("restore")

    def _value(self, epoch: int) -> float:
        noise = derive_seed("noise", self._seed, epoch) / 2**31 * self._noise
        return self._level + CURVE[min(epoch, len(CURVE)) - 1] + noise

    def _act(self, act: Act) -> None:
        if act == "raise":
            raise ProbeError("planted fault of the conformance runs")
        if act == "raise-base":
            raise ProbeEnd("planted end of the conformance runs")
        if act == "kill-self":
            os.kill(os.getpid(), signal.SIGKILL)
        if act == "hang":
            while True:
                time.sleep(3600)
        if act == "exit":
            os._exit(EXIT_CODE)
        if act == "kill":
            kill_from_outside()
        if act == "kill-once":
            with contextlib.suppress(FileExistsError):  # a trial of this configuration came here before
                (Path(self.options["notes"]) / f"{self._digest}.killed").touch(exist_ok=False)
                kill_from_outside()
        if act == "memory":
            _exhaust_memory()

    def _note(self, what: str, **values: Any) -> None:
        """Append one line to the notes; a trial on another machine has nowhere to note anything."""
        folder = self.options.get("notes")
        if not folder or not os.path.isdir(folder):
            return
        identity = {"pid": os.getpid(), "t": time.monotonic_ns(), "digest": self._digest, "born": self._born}
        entry = {"what": what, **identity, **values}
        descriptor = os.open(os.path.join(folder, NOTES), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, (json.dumps(entry) + "\n").encode())
        finally:
            os.close(descriptor)


def early_end(digest: str) -> int:
    """Return after which epoch the training of a configuration ends by itself under the option `ends_early`."""
    return 1 + derive_seed("end", digest) % 2


class ProbeWithoutState(Probe):
    """The same without a checkpoint: nothing has to be imported to write one."""

    name: ClassVar[str] = "probe-without-state"
    has_state: ClassVar[bool] = False
    preload: ClassVar[tuple[str, ...]] = ()


def _compute(seconds: float) -> int:
    """Use so much CPU time in this thread; return how many threads of the process used at least half of that meanwhile."""
    before = _cpu_ns()
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
    return sum(used - before.get(thread, 0) >= seconds / 2 * 1e9 for thread, used in _cpu_ns().items())


def _exhaust_memory() -> None:
    """Allocate and touch memory; if nothing stops that, keep it for a while and then raise MemoryError."""
    remaining, chunks = ALLOCATE_BYTES, []
    while remaining > 0:
        chunks.append(b"\x01" * min(remaining, _CHUNK_BYTES))
        remaining -= _CHUNK_BYTES
    time.sleep(HOLD_SECONDS)
    raise MemoryError(f"allocated {ALLOCATE_BYTES / 1e6:g} MB in {len(chunks)} pieces without meeting a limit")


def _cpu_ns() -> dict[str, int]:
    """Return the CPU time of each thread of this process."""
    by_thread: dict[str, int] = {}
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/self/task/{thread}/schedstat") as file:
            by_thread[thread] = int(file.read().split()[0])
    return by_thread


def _seen(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a training finds: of its process, of its configuration, and whether it may start a process.

    Each trial has to find what a fresh `python file.py` does, whatever the trials before it changed.
    """
    umask = os.umask(0o022)
    os.umask(umask)
    process = {
        "arguments": [os.path.basename(text) for text in sys.argv],
        "folder": os.getcwd(),
        "umask": umask,
        "handlers": {
            number.name: getattr(handler := signal.getsignal(number), "__name__", None) or str(handler) for number in _SIGNALS
        },
        "locale": locale.setlocale(locale.LC_ALL),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "variable": os.environ.get("CARELESS"),
    }
    child = ""  # or what went wrong with a process that was started
    try:
        started = multiprocessing.get_context("fork").Process(target=int)
        started.start()
        started.join(30)
        if started.exitcode != 0:
            child = f"it ended with {started.exitcode}"
    except BaseException as error:  # an AssertionError, in the children of some frameworks
        child = f"{type(error).__name__}: {error}"
    return {"process": process, "configuration": configuration, "child": child}


def _change(configuration: Mapping[str, Any]) -> None:
    """Do as careless trainings do: change the process and, in place, the configuration; print what no reader expects."""
    for value in configuration.values():
        if isinstance(value, list):
            value.append(99)
    sys.argv.append("--careless")
    os.chdir("/")
    os.umask(0o077)
    os.environ["CARELESS"] = "1"
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    multiprocessing.set_start_method("spawn", force=True)
    if threading.current_thread() is threading.main_thread():  # no other one may
        signal.signal(signal.SIGUSR1, lambda number, frame: None)
    for stream in (sys.stdout, sys.stderr):
        stream.write("".join(_PRINTED))
        stream.flush()
