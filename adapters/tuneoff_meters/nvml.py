"""The `nvml` meter: NVIDIA GPUs by their energy counters, else by power samples; needs the optional package nvidia-ml-py."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tuneoff.base import clock
from tuneoff.base.commands import install_command
from tuneoff.meter import MeterDescription, MeterError, OptionError, PowerMeter, PowerSample, check_names

_SHARES_HOLD_NS = 2_000_000_000  # NVML refreshes what processes used about once a second; until then the last stands


class NvmlMeter(PowerMeter):
    """Each GPU a domain `gpu-N`, N as NVML counts. Option `devices`: a list of those numbers; without it, all.

    NVML is used in the process that opens the meter alone, and that one must not fork: only supervisors open meters.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.check_options(options)
        self._nvml: Any = _started()
        self._is_closed = False
        try:
            self._devices = self._opened(options.get("devices"))
        except MeterError:
            self.close()
            raise
        names = tuple(device.domain for device in self._devices)
        how = {device.domain: "energy counter" if device.has_counter else "power samples" for device in self._devices}
        source = ", ".join(
            f"{domain} {way} ({device.name})" for (domain, way), device in zip(how.items(), self._devices, strict=True)
        )
        self.description = MeterDescription(kind="measured", source=f"NVML: {source}", domains=names)

    @staticmethod
    def check_options(options: Mapping[str, Any]) -> None:
        """Refuse wrong options; nothing is opened.

        Raises:
            OptionError: there is one.
        """
        check_names("nvml", options, ("devices",))
        wanted = options.get("devices")
        if wanted is not None and not (isinstance(wanted, list) and wanted and all(type(item) is int for item in wanted)):
            raise OptionError(f"meter nvml: `devices` must be a list of GPU numbers, but got {wanted!r}; correct power.options")

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

    def _opened(self, wanted: Sequence[int] | None) -> list[_Device]:
        nvml = self._nvml
        try:
            count = nvml.nvmlDeviceGetCount()
            if wanted is not None and any(not 0 <= item < count for item in wanted):
                raise OptionError(f"meter nvml: `devices` must lie in 0 .. {count - 1}, but got {wanted}; correct power.options")
            indices = range(count) if wanted is None else sorted(set(wanted))
            devices: list[_Device] = []
            for index in indices:
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                for has_counter in (True, False):  # a GPU that tells neither its energy nor its power is left out
                    device = _Device(nvml, handle, index, has_counter)
                    with contextlib.suppress(nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission):
                        device.sample()
                        devices.append(device)
                        break
        except nvml.NVMLError as error:
            raise MeterError(f"no GPU reading: NVML answers: {error}; check `nvidia-smi`") from error
        if not devices:
            why = "NVML finds none" if not count else "NVML reads neither energy nor power of it"
            raise MeterError(f"no GPU reading: {why}; take another meter")
        return devices


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
        self._nvml = nvml
        self._handle = handle
        self.domain = f"gpu-{index}"
        self.has_counter = has_counter
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
        fresh = [sample for sample in samples if sample.timeStamp > self._seen_us]
        if fresh:
            by_pid: dict[int, list[int]] = {}
            for sample in fresh:
                by_pid.setdefault(int(sample.pid), []).append(sample.smUtil)
            self._seen_us = max(sample.timeStamp for sample in fresh)
            self._shares = [(pid, min(sum(used) / len(used) / 100, 1.0)) for pid, used in by_pid.items() if any(used)]
            self._shares_ns = now
        elif now - self._shares_ns > _SHARES_HOLD_NS:
            self._shares = []
        return self._shares
