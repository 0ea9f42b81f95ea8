"""The `nvml` meter: NVIDIA GPUs by their energy counters, else by power samples; needs the optional package nvidia-ml-py."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

from tuneoff.base import clock
from tuneoff.base.commands import install_command
from tuneoff.meter import MeterDescription, MeterError, OptionError, PowerMeter, PowerSample

_SHARES_HOLD_NS = 2_000_000_000  # NVML refreshes what processes used about once a second; until then the last stands


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlOptions:
    """What the experiment file gives."""

    devices: Annotated[list[int], Meta(min_length=1)] | None = None  # as NVML counts them; None: all


class NvmlMeter(PowerMeter):
    """Each GPU a domain `gpu-N`, N as NVML counts.

    NVML is used in the process that opens the meter alone, and that one must not fork: only supervisors open meters.
    """

    options_type = NvmlOptions

    def __init__(self, options: Mapping[str, Any]) -> None:
        wanted: list[int] | None = self.check_options(options).devices
        self._nvml: Any = _started()
        self._is_closed = False
        try:
            self._devices = list(self._opened(wanted))
            if not self._devices:
                raise MeterError("no GPU reading: NVML finds no GPU that tells energy or power; take another meter")
        except self._nvml.NVMLError as error:
            self.close()
            raise MeterError(f"no GPU reading: NVML answers: {error}; check `nvidia-smi`") from error
        except MeterError:
            self.close()
            raise
        about = (
            f"{device.domain} {'energy counter' if device.has_counter else 'power samples'} ({device.name})"
            for device in self._devices
        )
        names = tuple(device.domain for device in self._devices)
        self.description = MeterDescription(kind="measured", source=f"NVML: {', '.join(about)}", domains=names)

    def read(self) -> Sequence[PowerSample]:
        """Return one sample per GPU.

        Raises:
            MeterError: a GPU does not answer any more; said once, and the next call reads the others.
        """
        samples, problems, working = [], [], []
        for device in self._devices:
            try:
                samples.append(device.sample())
                working.append(device)
            except self._nvml.NVMLError as error:
                problems.append(f"{device.domain} cannot be read any more ({error}); its energy is unknown from here on")
        self._devices = working
        if problems:
            raise MeterError("; ".join(problems))
        return samples

    def gpu_shares(self) -> Sequence[tuple[str, int, float]]:
        """Return (domain, process id, share of the device's time, 0 to 1) of each process that used one lately.

        Process ids are those of the host; in a container they may differ from its own. Empty where NVML cannot tell.
        """
        return [(device.domain, pid, share) for device in self._devices for pid, share in device.shares()]

    def gpu_memory(self) -> Sequence[tuple[str, int, int]]:
        """Return (domain, process id, bytes) of each process that has memory of a GPU and of which NVML can tell it."""
        return [(device.domain, pid, used) for device in self._devices for pid, used in device.memory()]

    def close(self) -> None:
        """Let go of NVML; may be called twice."""
        if not self._is_closed:
            self._is_closed = True
            self._nvml.nvmlShutdown()

    def _opened(self, wanted: Sequence[int] | None) -> Iterator[_Device]:
        nvml = self._nvml
        count = nvml.nvmlDeviceGetCount()
        if wanted is not None and any(not 0 <= item < count for item in wanted):
            raise OptionError(f"meter nvml: `devices` must lie in 0 .. {count - 1}, but got {wanted}; correct power.options")
        for index in range(count) if wanted is None else sorted(set(wanted)):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            for has_counter in (True, False):  # a GPU that tells neither its energy nor its power is left out
                device = _Device(nvml, handle, index, has_counter)
                with contextlib.suppress(nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission):
                    device.sample()
                    yield device
                    break


def _started() -> Any:
    try:
        import pynvml  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError as error:
        way_out = f"run: {install_command('nvidia-ml-py')}"
        raise MeterError(f"no GPU reading: the package nvidia-ml-py (module pynvml) is not installed; {way_out}") from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        if isinstance(error, pynvml.NVMLError_LibraryNotFound):
            raise MeterError("no GPU reading: no NVML library (this host has no NVIDIA driver)") from error
        raise MeterError(f"no GPU reading: NVML does not start: {error}; check `nvidia-smi`") from error
    return pynvml


class _Device:
    def __init__(self, nvml: Any, handle: Any, index: int, has_counter: bool) -> None:
        self._nvml, self._handle = nvml, handle
        self.domain, self.has_counter = f"gpu-{index}", has_counter
        self._seen_us = time.time_ns() // 1000  # NVML stamps what processes used in wall-clock microseconds
        self._shares: list[tuple[int, float]] = []
        self._shares_ns = 0

    @property
    def name(self) -> str:
        try:
            name = self._nvml.nvmlDeviceGetName(self._handle)
        except self._nvml.NVMLError:
            return "unnamed"
        return name.decode() if isinstance(name, bytes) else str(name)

    def sample(self) -> PowerSample:
        if self.has_counter:
            joules = self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle) / 1e3
            return PowerSample(t=clock.monotonic_ns(), domain=self.domain, joules=joules)
        watts = self._nvml.nvmlDeviceGetPowerUsage(self._handle) / 1e3
        return PowerSample(t=clock.monotonic_ns(), domain=self.domain, watts=watts)

    def memory(self) -> list[tuple[int, int]]:
        try:
            processes = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        except self._nvml.NVMLError:
            return []
        return [(int(process.pid), int(process.usedGpuMemory)) for process in processes if process.usedGpuMemory is not None]

    def shares(self) -> list[tuple[int, float]]:
        now = clock.monotonic_ns()
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(self._handle, self._seen_us)
        except self._nvml.NVMLError:  # nothing new (not found), or this GPU cannot tell (not supported)
            samples = []
        by_pid: dict[int, list[int]] = defaultdict(list)
        for sample in samples:
            if sample.timeStamp > self._seen_us:
                by_pid[int(sample.pid)].append(sample.smUtil)
        if by_pid:
            self._seen_us = max(sample.timeStamp for sample in samples)
            self._shares = [(pid, min(statistics.fmean(used) / 100, 1.0)) for pid, used in by_pid.items() if any(used)]
            self._shares_ns = now
        elif now - self._shares_ns > _SHARES_HOLD_NS:
            self._shares = []
        return self._shares
