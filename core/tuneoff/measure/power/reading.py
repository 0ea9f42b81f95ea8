"""A meter read again and again in a thread of its own: one that hangs stops nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tuneoff.base import clock
from tuneoff.measure.power.sampling_interval import Pace
from tuneoff.meter import MeterError, PowerMeter
from tuneoff.record.samples.schema import PowerSample

MOST_SHARE = 0.003  # of one core, for reading
AFTER_A_PROBLEM_SECONDS = 1.0  # at the least, to the next reading

Shares = tuple[tuple[str, int, float], ...]


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
        wait = 0.0
        try:
            samples = self._meter.read()
            if samples:
                self._take(checked(samples))
            self.shares = tuple(self._meter.gpu_shares())
        except MeterError as error:
            self._note(str(error))
            wait = AFTER_A_PROBLEM_SECONDS
        except Exception as error:  # a plugin's own code may fail in any way, and must not end the run's samples
            self._note(f"the power meter {self._name} failed: {type(error).__name__}: {error}")
            wait = AFTER_A_PROBLEM_SECONDS
        self._pace.spent(time.thread_time() - before)
        self.cpu_ns = time.thread_time_ns()
        self.has_answered = True
        return wait


def checked(samples: Sequence[PowerSample]) -> Sequence[PowerSample]:
    """Return the samples of a meter as they are.

    Raises:
        MeterError: one is none: written down, it could not be read again, nor the other lines of its file.
    """
    for sample in samples:
        if not (
            isinstance(sample, PowerSample)
            and type(sample.t) is int
            and isinstance(sample.domain, str)
            and all(value is None or type(value) in (int, float) for value in (sample.joules, sample.watts))
        ):
            problem = f"gave {sample!r:.120}, but must give PowerSample(t=ns, domain=text, joules=number or watts=number)"
            raise MeterError(f"the power meter {problem}; tell its author")
    return samples


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
