from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tuneoff.record.environment import accelerators


class NVMLError(Exception):
    pass


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801  (the package's own name)
    pass


def nvml(**changes: Any) -> SimpleNamespace:
    """Return a stand-in for the package with two GPUs."""
    module = SimpleNamespace(
        NVMLError=NVMLError,
        NVMLError_LibraryNotFound=NVMLError_LibraryNotFound,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: "Old GPU" if handle == 0 else "New GPU",
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=(handle + 1) * 16_000_000_000),
    )
    for name, value in changes.items():
        setattr(module, name, value)
    return module


def failing(error: type[Exception]) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail


def test_every_gpu_has_its_name_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml())
    assert accelerators() == [{"name": "Old GPU", "memory_mb": 16000.0}, {"name": "New GPU", "memory_mb": 32000.0}]


def test_no_driver_is_no_gpu_and_anything_else_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=failing(NVMLError_LibraryNotFound)))
    assert accelerators() == []
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlInit=failing(NVMLError)))
    assert accelerators() is None
    monkeypatch.setitem(sys.modules, "pynvml", nvml(nvmlDeviceGetMemoryInfo=failing(NVMLError)))
    assert accelerators() is None
    monkeypatch.setitem(sys.modules, "pynvml", None)  # not installed
    assert accelerators() is None
