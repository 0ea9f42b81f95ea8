"""NVML: energy counters first, power samples else; on a fake library, and on a real GPU where there is one."""

from __future__ import annotations

import sys
import time

import pytest

from measure.power.fake_nvml import Gpu, NVMLError, NVMLError_LibraryNotFound, Use, install
from tuneoff.meter import MeterError
from tuneoff_meters import nvml
from tuneoff_meters.nvml import NvmlMeter


def test_the_energy_counter_comes_first_and_power_samples_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [Gpu(millijoules=5_000), Gpu(millijoules=None, milliwatts=70_500), Gpu(millijoules=None, milliwatts=None)]
    install(monkeypatch, gpus)
    meter = NvmlMeter({})
    assert meter.description.kind == "measured"
    assert meter.description.domains == ("gpu-0", "gpu-1")
    assert meter.description.source == "NVML: gpu-0 energy counter (Fake GPU), gpu-1 power samples (Fake GPU)"
    gpus[0].millijoules = 7_500
    first, second = meter.read()
    assert (first.domain, first.joules, first.watts) == ("gpu-0", 7.5, None)
    assert (second.domain, second.joules, second.watts) == ("gpu-1", None, 70.5)


def test_only_the_devices_asked_for_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [Gpu(), Gpu()])
    assert NvmlMeter({"devices": [1]}).description.domains == ("gpu-1",)
    with pytest.raises(MeterError, match=r"`devices` must lie in 0 \.\. 1, but got \[2\]"):
        NvmlMeter({"devices": [2]})
    with pytest.raises(MeterError, match=r"`devices`: Expected `array \| null`, got `str`"):
        NvmlMeter({"devices": "all"})


def test_a_lost_gpu_is_said_once_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = [Gpu(), Gpu()]
    install(monkeypatch, gpus)
    meter = NvmlMeter({})
    gpus[0].is_lost = True
    with pytest.raises(MeterError, match="gpu-0 cannot be read any more"):
        meter.read()
    assert [sample.domain for sample in meter.read()] == ["gpu-1"]


def test_shares_are_the_mean_of_what_is_new_and_hold_until_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu()
    install(monkeypatch, [gpu])
    meter = NvmlMeter({})
    gpu.use = [Use(7, 90, 1)]  # before the meter was opened
    assert meter.gpu_shares() == []
    now = time.time_ns() // 1000
    gpu.use += [Use(7, 40, now + 1), Use(7, 60, now + 2), Use(8, 0, now + 2)]
    assert meter.gpu_shares() == [("gpu-0", 7, 0.5)]
    assert meter.gpu_shares() == [("gpu-0", 7, 0.5)]
    monkeypatch.setattr(nvml, "_SHARES_HOLD_NS", -1)
    assert meter.gpu_shares() == []


def test_memory_is_that_of_the_processes_of_which_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [Gpu(), Gpu(memory={7: 1_000, 8: None})])
    assert NvmlMeter({}).gpu_memory() == [("gpu-1", 7, 1_000)]


def test_each_way_to_have_no_gpu_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MeterError, match=r"nvidia-ml-py .* is not installed; run: pip install nvidia-ml-py"):
        NvmlMeter({})
    for error, text in ((NVMLError_LibraryNotFound(), "no NVML library"), (NVMLError("Unknown"), "does not start: Unknown")):
        install(monkeypatch, [], error)
        with pytest.raises(MeterError, match=text):
            NvmlMeter({})
    calls = install(monkeypatch, [])
    with pytest.raises(MeterError, match="NVML finds no GPU that tells energy or power"):
        NvmlMeter({})
    assert (calls.starts, calls.stops) == (1, 1)


def test_a_real_gpu_counts_energy() -> None:
    try:
        meter = NvmlMeter({})
    except MeterError as error:
        pytest.skip(str(error))
    try:
        first = {sample.domain: sample for sample in meter.read()}
        deadline = time.monotonic() + 5
        while True:
            second = {sample.domain: sample for sample in meter.read()}
            counters = [domain for domain in first if first[domain].joules is not None]
            if all((second[name].joules or 0) > (first[name].joules or 0) for name in counters) or time.monotonic() > deadline:
                break
        for name in first:
            seconds = (second[name].t - first[name].t) / 1e9
            joules, watts = second[name].joules, second[name].watts
            mean = watts if joules is None else (joules - (first[name].joules or 0)) / seconds
            assert mean is not None
            assert 1 < mean < 3000
        assert all(0 <= share <= 1 for _, _, share in meter.gpu_shares())
    finally:
        meter.close()
