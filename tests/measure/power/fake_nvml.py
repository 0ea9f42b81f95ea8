"""A module like pynvml with GPUs that a test describes."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest


class NVMLError(Exception):
    """Base of NVML's errors."""


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801  # NVML's name
    """No driver."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801
    """This GPU cannot tell."""


class NVMLError_NoPermission(NVMLError):  # noqa: N801
    """Root only."""


class NVMLError_NotFound(NVMLError):  # noqa: N801
    """No sample since then."""


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801
    """It fell off the bus."""


@dataclass
class Use:
    """What NVML saw of a process."""

    pid: int
    smUtil: int  # noqa: N815  # NVML's name
    timeStamp: int  # noqa: N815


@dataclass
class Gpu:
    """One GPU."""

    millijoules: int | None = 0  # None: it has no energy counter
    milliwatts: int | None = 100_000
    is_lost: bool = False
    use: list[Use] = field(default_factory=list)
    memory: dict[int, int | None] = field(default_factory=dict)  # bytes by pid; None: it cannot tell


@dataclass
class Calls:
    """What was called."""

    starts: int = 0
    stops: int = 0


def install(monkeypatch: pytest.MonkeyPatch, gpus: list[Gpu], start_error: Exception | None = None) -> Calls:
    """Make a fake of these GPUs the module pynvml."""
    calls = Calls()

    def start() -> None:
        if start_error is not None:
            raise start_error
        calls.starts += 1

    def stop() -> None:
        calls.stops += 1

    def told(name: str) -> Callable[[Gpu], int]:
        def tell(gpu: Gpu) -> int:
            if gpu.is_lost:
                raise NVMLError_GpuIsLost("GPU is lost")
            value: int | None = getattr(gpu, name)
            if value is None:
                raise NVMLError_NotSupported("Not Supported")
            return value

        return tell

    def used(gpu: Gpu, since: int) -> list[Use]:
        fresh = [one for one in gpu.use if one.timeStamp > since]
        if not fresh:
            raise NVMLError_NotFound("Not Found")
        return fresh

    errors = {
        error.__name__: error
        for error in (NVMLError, NVMLError_LibraryNotFound, NVMLError_NotSupported, NVMLError_NoPermission, NVMLError_NotFound)
    }
    functions = {
        "nvmlInit": start,
        "nvmlShutdown": stop,
        "nvmlDeviceGetCount": lambda: len(gpus),
        "nvmlDeviceGetHandleByIndex": lambda index: gpus[index],
        "nvmlDeviceGetName": lambda gpu: b"Fake GPU",
        "nvmlDeviceGetTotalEnergyConsumption": told("millijoules"),
        "nvmlDeviceGetPowerUsage": told("milliwatts"),
        "nvmlDeviceGetProcessUtilization": used,
        "nvmlDeviceGetComputeRunningProcesses": lambda gpu: [
            types.SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in gpu.memory.items()
        ],
    }
    module = types.ModuleType("pynvml")
    for name, value in {**errors, **functions}.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return calls
