"""Which meter a host gets, and why no better one; meters by name, and of other distributions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import fake_plugins
from measure.power.fake_nvml import Gpu, NVMLError_LibraryNotFound, install
from measure.power.powercap import set_energy, two_sockets, write_zone
from tuneoff import registry
from tuneoff.measure.power import select_meter as choosing
from tuneoff.measure.power.select_meter import check_options, choose
from tuneoff.meter import MeterError, OptionError

BROKEN = {
    "raising": ("measure.power.third_party:Raising", "fails when it is opened: RuntimeError: first line second line"),
    "mute": ("measure.power.third_party:Mute", "must have a MeterDescription, but has 'a meter'"),
    "no-meter": ("measure.power.third_party:NoMeter", "must be a subclass of PowerMeter"),
    "nowhere": ("no_such_module:Meter", r"is broken \(fakes 1\.0\): .*No module named 'no_such_module'"),
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options by which `auto` looks at a host without counters and GPUs; tests add some."""
    install(monkeypatch, [], NVMLError_LibraryNotFound())
    monkeypatch.setattr(choosing, "_GPUS", tmp_path / "gpus")
    return {"rapl": {"root": str(tmp_path / "powercap")}}


def test_without_counters_the_model_is_taken_and_says_why(host: dict[str, Any]) -> None:
    name, meter, reason = choose(options=host)
    assert (name, meter.description.kind, meter.description.domains) == ("model", "estimated", ())
    assert reason.startswith("no RAPL (no-powercap): no ")
    assert reason.endswith("; no GPU (no NVIDIA driver)")
    assert "\n" not in reason


def test_counters_and_gpus_are_one_meter(host: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    zones = two_sockets(Path(host["rapl"]["root"]))
    calls = install(monkeypatch, [Gpu()])
    name, meter, reason = choose(options=host)
    assert (name, meter.description.kind, reason) == ("rapl+nvml", "measured", "")
    assert meter.description.domains == ("package-0", "package-1", "dram-0", "dram-1", "gpu-0")
    assert len(meter.read()) == 5
    (zones["dram-1"] / "energy_uj").unlink()
    with pytest.raises(MeterError, match="dram-1 cannot be read any more"):
        meter.read()
    assert [sample.domain for sample in meter.read()] == ["gpu-0", "package-0", "package-1", "dram-0", "gpu-0"]
    meter.close()
    assert calls.stops == 1


def test_a_gpu_that_cannot_be_metered_is_said_beside_the_counters(host: dict[str, Any]) -> None:
    two_sockets(Path(host["rapl"]["root"]))
    assert choose(options=host)[::2] == ("rapl", "")
    (choosing._GPUS / "0000:01:00.0").mkdir(parents=True)
    name, _, reason = choose(options=host)
    assert (name, reason.partition(": ")[0]) == ("rapl", "no GPU reading")


def test_gpus_are_metered_beside_the_model_and_not_beside_the_whole_platform(
    host: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = install(monkeypatch, [Gpu()])
    assert choose(options=host)[0] == "nvml+model"
    set_energy(write_zone(Path(host["rapl"]["root"]), "intel-rapl:0", "psys", 1), 2)
    name, meter, reason = choose(options=host)
    assert (name, meter.description.domains, calls.starts) == ("rapl", ("psys",), 1)
    assert "psys is the whole platform" in reason


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"raple": {}}, "meter auto has no option 'raple'; did you mean 'rapl'"),
        ({"rapl": {"roo": "x"}}, "meter rapl has no option 'roo'; did you mean 'root'"),
        ({"rapl": "x"}, "`rapl` must be a mapping of that meter's options, but got 'x'"),
        ({"nvml": {"devices": 0}}, "`devices`: Expected `array | null`, got `int`, but got 0"),
        ({"model": {"cpu": "Xeon"}}, "no CPU 'Xeon' in the table"),
    ],
)
def test_a_wrong_option_of_auto_is_refused_and_no_other_meter_is_taken(
    host: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    two_sockets(Path(host["rapl"]["root"]))
    for refuse in (lambda: choose(options={**host, **options}), lambda: check_options("auto", {**host, **options})):
        with pytest.raises(OptionError) as caught:
            refuse()
        assert problem in str(caught.value)
        assert "\n" not in str(caught.value)


def test_options_are_checked_without_opening_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    started = tmp_path / "started"
    for name, right, wrong, problem in (
        ("rapl", {"root": str(tmp_path / "none")}, {"root": 5}, "`root`: Expected `str`, got `int`, but got 5"),
        ("nvml", {"devices": [7]}, {"devices": ["7"]}, "`devices[0]`: Expected `int`, got `str`, but got ['7']"),
        ("command", {"command": f"touch {started}"}, {"command": f"touch {started}", "timeout_seconds": 0}, ">= 0.1, but got 0"),
        ("codecarbon", {"interval_seconds": 2}, {"interval": 2}, "has no option 'interval'"),
        ("constant", {"watts": 5}, {"watts": -5}, "`watts`: Expected `float` >= 0.001, but got -5"),
        ("constant", {"watts": 5}, {}, "missing required field `watts`; correct power.options"),
        ("replay", None, {"path": str(tmp_path / "no.csv")}, "no.csv cannot be read"),
        ("measure.power.third_party:Plug", {"watts": 5}, None, ""),
    ):
        if right is not None:
            check_options(name, right)
        if wrong is not None:
            with pytest.raises(MeterError) as caught:
                check_options(name, wrong)
            assert problem in str(caught.value)
    assert not started.exists()


def test_every_meter_of_ours_is_registered() -> None:
    names = {"rapl", "nvml", "model", "constant", "replay", "command", "codecarbon", "prometheus"}
    assert names <= {plugin.name for plugin in registry.scan("power_meter")}
    assert registry.broken_power_meters() == []


def test_a_constant_power_knows_its_baseline() -> None:
    _, meter, _ = choose("constant", {"watts": 65})
    (sample,) = meter.read()
    assert (meter.description.kind, sample.domain, sample.watts) == ("estimated", "node", 65)
    assert meter.idle_watts == {"node": 65}


def test_a_broken_meter_is_one_line_and_hurts_no_other(host: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    meters = [fake_plugins.plugin(name, target) for name, (target, _) in BROKEN.items()]
    fake_plugins.register(monkeypatch, meters=[*meters, fake_plugins.plugin("plug", "measure.power.third_party:Plug")])
    for name, (_, problem) in BROKEN.items():
        with pytest.raises(MeterError, match=problem) as caught:
            choose(name)
        assert "\n" not in str(caught.value)
    assert len(registry.broken_power_meters()) == 2  # what is only seen when it is opened is not
    for name in ("plug", "measure.power.third_party:Plug"):
        assert choose(name, {"watts": 3})[1].read()[0].watts == 3
    assert choose(options=host)[0] == "model"


def test_choosing_scans_no_distributions_and_imports_no_library(tmp_path: Path) -> None:
    code = (
        "import sys, importlib.metadata as m\n"
        "def refuse(**_): raise AssertionError('scanned')\n"
        "m.entry_points = refuse\n"
        "from tuneoff.measure.power.select_meter import choose\n"
        f"assert choose(options={{'rapl': {{'root': {str(tmp_path / 'none')!r}}}}})[0].endswith('model')\n"
        "print(sorted({'codecarbon', 'pydantic', 'numpy', 'urllib.request'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
