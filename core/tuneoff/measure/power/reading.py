"""A meter read again and again in a thread of its own: one that hangs stops nothing else.

It is read more rarely where a look is dear and as the file grows. A database is asked once for the run's time, afterwards, and
not for ever.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tuneoff.base import clock
from tuneoff.base.clock import Anchor
from tuneoff.base.numbers import described_value, number_of
from tuneoff.meter import MeterError, PowerMeter
from tuneoff.record.samples.schema import PowerSample

MOST_SHARE = 0.003  # of one core, for reading
AFTER_A_PROBLEM_SECONDS = 1.0  # at the least, to the next reading

Shares = tuple[tuple[str, int, float], ...]
FILE_BYTES = 10_000_000  # of a run's samples: beyond, the interval is the longest
STEPS = 8  # the interval doubles each time that so many parts of it are full
LONGEST_SECONDS = 5.0  # counters wrap, and a gap between samples that is too long is not covered
_FORGETTING = 0.2  # weight of the last look in the mean cost


@contextlib.contextmanager
def noting(name: str, note: Callable[[str], None]) -> Iterator[threading.Event]:
    """Note what goes wrong in a block: a plugin's own code may fail in any way, and must not end a run or its samples."""
    is_done = threading.Event()  # for the block to set
    try:
        yield is_done
    except MeterError as error:
        note(str(error))
    except Exception as error:
        note(f"the power meter {name} failed: {type(error).__name__}: {error}")


class MeterReader:
    """Reads a meter from `start` to `stop`; what it reads goes to `take`, what goes wrong to `note`."""

    def __init__(
        self,
        name: str,
        meter: PowerMeter,
        lock: threading.Lock,
        *,
        interval_seconds: float,
        take: Callable[[Sequence[PowerSample]], None],
        note: Callable[[str], None],
        written: Callable[[], int] = lambda: 0,
    ) -> None:
        """`lock` is the meter's: a reading that hangs keeps it, and no other begins. `written`: bytes of the file so far."""
        self._name, self._meter, self._lock = name, meter, lock
        self._take, self._note, self._written = take, note, written
        self._pace = Pace(interval_seconds, MOST_SHARE)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"meter-{name}", daemon=True)
        self.cpu_ns = 0  # of the thread so far
        self.has_answered = False  # a reading came to its end, with samples or without
        self.shares: Shares = ()  # of GPUs, at the last reading
        self.memory: tuple[tuple[str, int, int], ...] = ()  # likewise

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Let it read once more and end."""
        self._ended.set()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False, and a note, where the meter still hangs."""
        self._thread.join(max(0.0, seconds))
        if self._thread.is_alive():
            self._note(f"the power meter {self._name} did not answer in time at the end of the run; it was left alone")
        return not self._thread.is_alive()

    def _run(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._note(f"the power meter {self._name} has hung since an earlier run; nothing was read from it")
            return
        try:
            due = time.monotonic()
            while not self._ended.is_set():
                least = self._read()
                due = max(due + max(least, self._pace.interval(self._written())), time.monotonic())
                self._ended.wait(due - time.monotonic())
            self._read()
        finally:
            self._lock.release()

    def _read(self) -> float:
        """Read once, and return for how long at least to wait then."""
        before = time.thread_time()
        with noting(self._name, self._note) as is_read:
            samples = self._meter.read()
            if samples:
                self._take(checked(samples))
            self.shares, self.memory = tuple(self._meter.gpu_shares()), tuple(self._meter.gpu_memory())
            is_read.set()
        self._pace.spent(time.thread_time() - before)
        self.cpu_ns = time.thread_time_ns()
        self.has_answered = True
        return 0.0 if is_read.is_set() else AFTER_A_PROBLEM_SECONDS


def checked(samples: Iterable[PowerSample]) -> Sequence[PowerSample]:
    """Return the samples of a meter, with numbers of Python's own.

    Raises:
        MeterError: one is not a sample: written down, it could not be read again, nor the other lines of its file.
    """
    return [_checked(sample) for sample in samples]


def _checked(sample: PowerSample) -> PowerSample:
    must = "but must give PowerSample(t=ns, domain=text, joules=number or watts=number); tell its author"
    if not isinstance(sample, PowerSample):
        raise MeterError(f"the power meter gave {described_value(sample)}, {must}")
    values = (sample.t, sample.joules, sample.watts)
    if all(value is None or type(value) in (int, float) for value in values):
        numbers: list[float | None] = list(values)
    else:
        numbers = [None if value is None else number_of(value) for value in values]
        sample = msgspec.structs.replace(sample, t=numbers[0], joules=numbers[1], watts=numbers[2])
    is_number = [value is None or number is not None for value, number in zip(values, numbers, strict=True)]
    if not all(is_number) or type(numbers[0]) is not int or not isinstance(sample.domain, str):
        described = ", ".join(map(described_value, (values[0], sample.domain, *values[1:])))
        raise MeterError(f"the power meter gave a sample of {described}, {must}")
    return sample


def mean_watts(samples: Sequence[PowerSample]) -> dict[str, float]:
    """Return the mean power of each domain over its samples, in W; a domain with fewer than two is left out."""
    first: dict[str, PowerSample] = {}
    last: dict[str, PowerSample] = {}
    joules: dict[str, float] = {}
    for sample in samples:
        before = last.get(sample.domain)
        if before is None:
            first[sample.domain], joules[sample.domain] = sample, 0.0
        elif sample.t <= before.t:
            continue
        elif sample.watts is not None:
            joules[sample.domain] += sample.watts * (sample.t - before.t) / clock.NANOSECONDS
        elif sample.joules is not None and before.joules is not None:
            joules[sample.domain] += max(0.0, sample.joules - before.joules)
        last[sample.domain] = sample
    return {
        domain: joules[domain] / ((last[domain].t - sample.t) / clock.NANOSECONDS)
        for domain, sample in first.items()
        if last[domain].t > sample.t
    }


class Pace:
    """The interval between looks, in seconds."""

    def __init__(self, interval_seconds: float, most_share: float) -> None:
        """`most_share`: of one core's time, that looking may take on the mean."""
        self._interval_seconds, self._most_share = interval_seconds, most_share
        self._cost: float | None = None

    def spent(self, cpu_seconds: float) -> None:
        """Count what a look cost."""
        if self._cost is None:
            self._cost = 0.0  # the first look meets everything as new
        else:
            self._cost += _FORGETTING * (cpu_seconds - self._cost)

    def interval(self, written_bytes: int) -> float:
        """Return how long to wait from one look to the next, with a file of so many bytes."""
        by_size = self._interval_seconds * 2.0 ** (written_bytes * STEPS // FILE_BYTES)
        by_cost = (self._cost or 0.0) / self._most_share
        return max(self._interval_seconds, min(LONGEST_SECONDS, max(by_size, by_cost)))


def collected(
    meter: PowerMeter,
    name: str,
    lock: threading.Lock,
    start: Anchor,
    *,
    within_seconds: float,
    note: Callable[[str], None],
) -> Sequence[PowerSample]:
    """Return the samples from `start` to now, on the monotonic clock; what goes wrong is noted. `lock` is the meter's."""
    collected_samples: list[PowerSample] = []
    is_done = threading.Event()
    shift_ns = start.monotonic_ns - start.wall_ns

    def ask() -> None:
        with lock, noting(name, note):
            samples = checked(list(meter.collect(start.wall_ns, time.time_ns())))
            collected_samples.extend(msgspec.structs.replace(sample, t=sample.t + shift_ns) for sample in samples)
            for problem in meter.problems:
                note(problem)
            if not samples:
                note(f"the power meter {name} has no samples of this run")
        is_done.set()

    threading.Thread(target=ask, name=f"meter-{name}", daemon=True).start()
    if not is_done.wait(within_seconds):
        note(f"the power meter {name} did not answer within {within_seconds:g} s after the run; its samples are missing")
        return ()
    return collected_samples
