"""The workload `faulty`: the surrogate with planted faults, decided by the configuration's hash, or by a list of configurations.

So every framework meets the same faulty trials, in whatever order it runs them, and a retry fails again.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from tuneoff.base.identity import canonical_json, is_finite
from tuneoff.base.processes import kill_from_outside
from tuneoff.errors import ExperimentError
from tuneoff.workload import Configuration, TrialSeeds
from tuneoff_workloads.surrogate import Surrogate

Kind = Literal[
    "raise",
    "nan",
    "inf",
    "no_report",
    "hang",
    "exit_code",
    "sigkill",
    "out_of_memory",
    "wrong_metric",
    "duplicate_report",
    "late_report",
    "disk_full",
    "outside",
]
ALL_KINDS: tuple[Kind, ...] = get_args(Kind)
_FOREIGN: tuple[Kind, ...] = ("raise", "nan", "inf", "no_report", "exit_code", "wrong_metric", "duplicate_report", "late_report")
_OF_METRICS: tuple[Kind, ...] = ("nan", "inf", "no_report", "wrong_metric")
_OF_REPORTS: tuple[Kind, ...] = ("duplicate_report", "late_report")
KINDS: tuple[Kind, ...] = ALL_KINDS[:8]  # unless `kinds` says otherwise: faults of the trial's own process
EXIT_CODE = 3
GO_ON = ".go_on"  # after the name of the file `mark`: what the trial of `outside` waits for has happened
FILLING = "filling"  # the file that fills a disk
LARGEST_DISK_BYTES = 10**9  # no larger one is filled: it would not be one that was made for it
_CHUNK_BYTES = 16_000_000
_LOOK_SECONDS = 0.02
_DEFAULTS: dict[str, Any] = {
    "kinds": KINDS,
    "rate": 0.3,  # fraction of the configurations that are faulty
    "configurations": None,  # those that are faulty, in place of `rate`
    "at_epoch": 1,
    "mark": None,  # a path: of a file that is made when the fault strikes
    "once": False,  # the fault strikes only while there is no `mark`
    "epoch_seconds": 0.0,
    "allocate_mb": 2000,  # 10^6 bytes, of out_of_memory
    "hold_seconds": 10.0,  # how long out_of_memory keeps them, where no limit meets it, and outside waits
    "fill_folder": None,  # of disk_full: a folder on a small disk
    "noise": 0.0,
}


class PlantedFaultError(RuntimeError):
    """What the fault `raise` raises."""


def fault_of(configuration: Configuration, options: Mapping[str, Any] | None = None) -> Kind | None:
    """Return the fault that a configuration meets under these options, or None; a pure function.

    Raises:
        ExperimentError: an option is wrong.
    """
    settings = _checked(options or {})
    kinds: Sequence[Kind] = settings["kinds"]
    if settings["configurations"] is not None:
        is_listed = any(canonical_json(dict(configuration)) == canonical_json(item) for item in settings["configurations"])
        return kinds[0] if is_listed else None
    content = hashlib.sha256(b"fault" + canonical_json(dict(configuration)).encode()).digest()
    if int.from_bytes(content[:8], "big") / 2**64 >= settings["rate"]:
        return None
    return kinds[int.from_bytes(content[8:16], "big") % len(kinds)]


class Faulty(Surrogate):
    """The surrogate's learning curve until the fault.

    Options: `kinds` (list), `rate` (fraction of faulty configurations) or `configurations` (the faulty ones: of the first kind),
    `at_epoch`, `mark` (a path: of a file that is made when the fault strikes), `once` (only while there is no such file),
    `allocate_mb` and `hold_seconds` (out_of_memory, outside), `fill_folder` (disk_full), and the surrogate's `noise` and
    `epoch_seconds`.

    `raise`, `hang`, `exit_code` (3), `sigkill`, `out_of_memory`, `disk_full` and `outside` happen while that epoch trains; from
    that epoch on `nan` and `inf` are what each metric becomes, `no_report` leaves all metrics out, and `wrong_metric` gives them
    other names; `duplicate_report` reports that epoch twice, and `late_report` reports it after the next one.
    """

    name: ClassVar[str] = "faulty"
    default_options: ClassVar[Mapping[str, Any] | None] = _DEFAULTS
    foreign_options: ClassVar[frozenset[str]] = frozenset(
        {"kinds", "rate", "configurations", "at_epoch", "epoch_seconds", "noise"}
    )

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._settings = _checked(options)
        self._fault: Kind | None = None

    @classmethod
    def refuse_foreign(cls, options: Mapping[str, Any]) -> str | None:
        """Refuse kinds that fill files, take memory, end processes or let them wait."""
        harmful = [kind for kind in _checked(options)["kinds"] if kind not in _FOREIGN]
        return f"option 'kinds' may only hold {', '.join(_FOREIGN)}, but has {', '.join(harmful)}" if harmful else None

    def load(self, configuration: Configuration, seeds: TrialSeeds) -> None:
        super().load(configuration, seeds)
        self._fault = fault_of(configuration, self.options)
        self._held: tuple[int, Mapping[str, float]] | None = None

    def train_epoch(self, epoch: int) -> Mapping[str, float]:
        metrics = super().train_epoch(epoch)  # which sleeps
        is_of_training = self._fault not in (None, *_OF_METRICS, *_OF_REPORTS)
        if is_of_training and epoch == self._settings["at_epoch"] and (self._mark() or not self._settings["once"]):
            self._strike(epoch)
        return metrics

    def validate(self) -> Mapping[str, float]:
        metrics = super().validate()
        if self._fault not in _OF_METRICS or self._epoch < self._settings["at_epoch"]:
            return metrics
        self._mark()
        if self._fault == "no_report":
            return {}
        if self._fault == "wrong_metric":
            return {f"wrong_{name}": value for name, value in metrics.items()}
        return dict.fromkeys(metrics, math.nan if self._fault == "nan" else math.inf)

    def to_report(self, epoch: int, metrics: Mapping[str, float]) -> Sequence[tuple[int, Mapping[str, float]]]:
        if self._fault not in _OF_REPORTS:
            return super().to_report(epoch, metrics)
        is_struck = epoch == self._settings["at_epoch"]
        if is_struck and self._fault == "late_report":
            self._held = (epoch, metrics)
            return []
        late, self._held = self._held, None
        if is_struck or late is not None:
            self._mark()
        return [(epoch, metrics)] * (2 if is_struck else 1) + ([late] if late is not None else [])

    def _mark(self) -> bool:
        """Make the mark, and return whether there was none."""
        if self._settings["mark"] is None:
            return True
        try:
            Path(self._settings["mark"]).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _strike(self, epoch: int) -> None:
        if self._fault == "raise":
            raise PlantedFaultError(f"planted fault in epoch {epoch}")
        if self._fault == "hang":
            while True:
                time.sleep(3600)
        if self._fault == "exit_code":
            os._exit(EXIT_CODE)
        if self._fault == "sigkill":
            kill_from_outside()
        if self._fault == "out_of_memory":
            _exhaust_memory(self._settings["allocate_mb"], self._settings["hold_seconds"])
        if self._fault == "disk_full":
            _fill_disk(self._settings["fill_folder"])
        if self._fault == "outside":
            # Until somebody has struck from outside, which the file beside the mark tells, or for so long.
            mark, deadline = self._settings["mark"], time.monotonic() + self._settings["hold_seconds"]
            while mark is not None and not Path(f"{mark}{GO_ON}").exists() and time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)


def _exhaust_memory(allocate_mb: float, hold_seconds: float) -> None:
    """Allocate and touch memory; if nothing stops that, keep it for a while and then raise MemoryError."""
    remaining, chunks = int(allocate_mb * 1e6), []
    while remaining > 0:
        chunks.append(b"\x01" * min(remaining, _CHUNK_BYTES))
        remaining -= _CHUNK_BYTES
    time.sleep(hold_seconds)
    raise MemoryError(f"allocated {allocate_mb:g} MB in {len(chunks)} pieces without meeting a limit")


def _fill_disk(folder: str | None) -> None:
    """Fill the disk of a folder, if it is a small one, and leave it full.

    Raises:
        OSError: ENOSPC, where there is no small disk to fill: the error that a full one gives.
    """
    if folder is None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    disk = os.statvfs(folder)
    if disk.f_frsize * disk.f_blocks > LARGEST_DISK_BYTES:
        raise ExperimentError(
            f"faulty: a disk of more than {LARGEST_DISK_BYTES / 1e9:g} GB is not filled, but `fill_folder` is {folder}"
        )
    descriptor = os.open(Path(folder) / FILLING, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    size = _CHUNK_BYTES
    try:
        while size > 0:
            try:
                os.write(descriptor, bytes(size))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    finally:
        os.close(descriptor)


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - set(_DEFAULTS))
    if unknown:
        raise ExperimentError(f"faulty has no option {unknown[0]!r}; its options: {', '.join(_DEFAULTS)}")
    settings = {**_DEFAULTS, **options}
    kinds, rate, epoch, listed = (settings[name] for name in ("kinds", "rate", "at_epoch", "configurations"))
    is_given = settings["mark"] is not None
    rules = (
        ("kinds", _is_list(kinds, lambda kind: kind in ALL_KINDS) and kinds, f"a list of some of {', '.join(ALL_KINDS)}"),
        ("rate", is_finite(rate) and 0 <= rate <= 1, "a number from 0 to 1"),
        ("at_epoch", isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= 1, "an integer of at least 1"),
        *(
            (name, is_finite(settings[name]) and settings[name] >= 0, "a number of at least 0")
            for name in ("allocate_mb", "hold_seconds", "epoch_seconds")
        ),
        *((name, isinstance(settings[name], str | None), "a path") for name in ("mark", "fill_folder")),
        ("once", settings["once"] is False or (settings["once"] is True and is_given), "true or false, and needs `mark`"),
        (
            "configurations",
            listed is None or _is_list(listed, lambda item: isinstance(item, Mapping)),
            "a list of configurations",
        ),
    )
    for name, holds, rule in rules:
        if not holds:
            raise ExperimentError(f"faulty: `{name}` must be {rule}, but got {settings[name]!r}")
    return settings


def _is_list(value: object, holds: Callable[[object], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(holds, value))
