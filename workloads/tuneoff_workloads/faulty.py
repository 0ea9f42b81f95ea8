"""The workload `faulty`: the surrogate with planted faults, decided by the configuration's hash.

So every framework meets the same faulty trials, in whatever order it runs them, and a retry fails again.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from tuneoff.errors import ExperimentError
from tuneoff.experiment.identity import canonical_json, is_finite
from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.surrogate import Surrogate

Kind = Literal["raise", "nan", "inf", "no_report", "hang", "exit_code", "sigkill", "out_of_memory"]
KINDS: tuple[Kind, ...] = ("raise", "nan", "inf", "no_report", "hang", "exit_code", "sigkill", "out_of_memory")
EXIT_CODE = 3
_DEFAULTS: dict[str, Any] = {
    "kinds": KINDS,
    "rate": 0.3,  # fraction of the configurations that are faulty
    "at_epoch": 1,
    "allocate_mb": 2000,  # 10^6 bytes, of out_of_memory
    "hold_seconds": 10.0,  # how long out_of_memory keeps them, where no limit meets it
    "noise": 0.0,
}
_CHUNK_BYTES = 16_000_000


class PlantedFaultError(RuntimeError):
    """What the fault `raise` raises."""


def fault_of(configuration: Configuration, options: Mapping[str, Any] | None = None) -> Kind | None:
    """Return the fault that a configuration meets under these options, or None; a pure function.

    Raises:
        ExperimentError: an option is wrong.
    """
    settings = _checked(options or {})
    content = hashlib.sha256(b"fault" + canonical_json(dict(configuration)).encode()).digest()
    if int.from_bytes(content[:8], "big") / 2**64 >= settings["rate"]:
        return None
    kinds: Sequence[Kind] = settings["kinds"]
    return kinds[int.from_bytes(content[8:16], "big") % len(kinds)]


def example_of(kind: Kind | None, options: Mapping[str, Any] | None = None, skip: int = 0) -> dict[str, float]:
    """Return a configuration {"learning_rate": ...} that meets that fault (None: no fault), the one after `skip` others.

    Raises:
        ExperimentError: the options let no such configuration occur.
    """
    for index in range(1, 20_000):
        configuration = {"learning_rate": index / 20_000}
        if fault_of(configuration, options) == kind:
            if skip == 0:
                return configuration
            skip -= 1
    raise ExperimentError(f"faulty: no configuration with fault {kind!r} under these options; change `kinds` or `rate`")


class Faulty(Surrogate):
    """The surrogate's learning curve until the fault.

    Options: `kinds` (list), `rate` (fraction of faulty configurations), `at_epoch`, `allocate_mb` and `hold_seconds`
    (out_of_memory), and the surrogate's `noise`. `raise`, `hang`, `exit_code` (3), `sigkill` and `out_of_memory` happen while
    that epoch trains; from that epoch on `nan` and `inf` are what each metric becomes, and `no_report` leaves all metrics out.
    """

    name: ClassVar[str] = "faulty"
    option_names: ClassVar[tuple[str, ...]] = tuple(_DEFAULTS)

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._settings = _checked(options)
        self._fault: Kind | None = None

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self._fault = fault_of(configuration, self.options)

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        if epoch == self._settings["at_epoch"]:
            self._strike(epoch)
        return super().train_epoch(epoch)

    def validate(self) -> Mapping[str, float]:
        metrics = super().validate()
        if self._epoch < self._settings["at_epoch"]:
            return metrics
        if self._fault == "no_report":
            return {}
        if self._fault in ("nan", "inf"):
            return dict.fromkeys(metrics, math.nan if self._fault == "nan" else math.inf)
        return metrics

    def _strike(self, epoch: int) -> None:
        if self._fault == "raise":
            raise PlantedFaultError(f"planted fault in epoch {epoch}")
        if self._fault == "hang":
            while True:
                time.sleep(3600)
        if self._fault == "exit_code":
            os._exit(EXIT_CODE)
        if self._fault == "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "out_of_memory":
            _exhaust_memory(self._settings["allocate_mb"], self._settings["hold_seconds"])


def _exhaust_memory(allocate_mb: float, hold_seconds: float) -> None:
    """Allocate and touch memory; if nothing stops that, keep it for a while and then raise MemoryError."""
    remaining, chunks = int(allocate_mb * 1e6), []
    while remaining > 0:
        chunks.append(b"\x01" * min(remaining, _CHUNK_BYTES))
        remaining -= _CHUNK_BYTES
    time.sleep(hold_seconds)
    raise MemoryError(f"allocated {allocate_mb:g} MB in {len(chunks)} pieces without meeting a limit")


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - set(_DEFAULTS))
    if unknown:
        raise ExperimentError(f"faulty has no option {unknown[0]!r}; its options: {', '.join(_DEFAULTS)}")
    settings = {**_DEFAULTS, **options}
    kinds = settings["kinds"]
    if isinstance(kinds, str) or not isinstance(kinds, Sequence) or not kinds or any(kind not in KINDS for kind in kinds):
        raise ExperimentError(f"faulty: `kinds` must be a list of some of {', '.join(KINDS)}, but got {kinds!r}")
    if not is_finite(settings["rate"]) or not 0 <= settings["rate"] <= 1:
        raise ExperimentError(f"faulty: `rate` must be a number from 0 to 1, but got {settings['rate']!r}")
    epoch = settings["at_epoch"]
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 1:
        raise ExperimentError(f"faulty: `at_epoch` must be an integer of at least 1, but got {epoch!r}")
    for name in ("allocate_mb", "hold_seconds"):
        if not is_finite(settings[name]) or settings[name] < 0:
            raise ExperimentError(f"faulty: `{name}` must be a number of at least 0, but got {settings[name]!r}")
    return settings
