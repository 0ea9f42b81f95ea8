"""The accelerators of this host, for the record: names and memory, as NVML has them."""

from __future__ import annotations

from typing import Any

MEGABYTE = 1e6


def accelerators() -> list[dict[str, Any]] | None:
    """Return {"name", "memory_mb"} of each NVIDIA GPU; empty without one, None where NVML or its package cannot tell."""
    try:
        import pynvml  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return []
    except pynvml.NVMLError:
        return None
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [
            {"name": _name(pynvml, one), "memory_mb": pynvml.nvmlDeviceGetMemoryInfo(one).total / MEGABYTE} for one in handles
        ]
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _name(nvml: Any, handle: Any) -> str:
    name = nvml.nvmlDeviceGetName(handle)
    return name.decode() if isinstance(name, bytes) else str(name)
