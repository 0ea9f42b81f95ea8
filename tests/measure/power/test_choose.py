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
from measure.power.third_party import Plug
from tuneoff import registry
from tuneoff.measure.power import select_meter as choosing
from tuneoff.measure.power.select_meter import check_options, choose
from tuneoff.meter import MeterError, OptionError

BROKEN = {
    "raising": ("measure.power.third_party:Raising", "fails when it is opened: RuntimeError: first line second line"),
    "mute": ("measure.power.third_party:Mute", "must have a MeterDescription, but has 'a meter'"),
    "no-meter": ("measure.power.third_party:NoMeter", "must be a subclass of PowerMeter"),
    "function": ("measure.power.third_party:function", "must be a subclass of PowerMeter"),
    "nowhere": ("no_such_module:Meter", r"is broken \(fakes 1\.0\): .*No module named 'no_such_module'"),
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Options by which `auto` looks at a host without counters and GPUs; tests add some."""
    install(monkeypatch, [], NVMLError_LibraryNotFound())
    monkeypatch.setattr(choosing, "_GPUS", tmp_path / "gpus")
    return {"rapl": {"root": str(tmp_path / "powercap")}}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    meters = [fake_plugins.plugin(name, target) for name, (target, _) in BROKEN.items()]
    fake_plugins.register(monkeypatch, meters=[*meters, fake_plugins.plugin("plug", "measure.power.third_party:Plug")])


def test_without_counters_the_model_is_taken_and_says_why(host: dict[str, Any]) -> None:
    chosen = choose(options=host)
    assert (chosen.name, chosen.description.kind, chosen.description.domains) == ("model", "estimated", ())
    assert chosen.reason.startswith("no RAPL (no-powercap): no ")
    assert chosen.reason.endswith("; no GPU (no NVIDIA driver)")
    assert "\n" not in chosen.reason
    chosen.close()
    chosen.close()


def test_counters_and_gpus_are_one_meter(host: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    zones = two_sockets(Path(host["rapl"]["root"]))
    gpu = Gpu()
    calls = install(monkeypatch, [gpu])
    chosen = choose(options=host)
    assert (chosen.name, chosen.description.kind, chosen.reason) == ("rapl+nvml", "measured", "")
    assert chosen.description.domains == ("package-0", "package-1", "dram-0", "dram-1", "gpu-0")
    assert len(chosen.meter.read()) == 5
    (zones["dram-1"] / "energy_uj").unlink()
    with pytest.raises(MeterError, match="dram-1 cannot be read any more"):
        chosen.meter.read()
    assert [sample.domain for sample in chosen.meter.read()] == ["gpu-0", "package-0", "package-1", "dram-0", "gpu-0"]
    chosen.close()
    assert calls.stops == 1


def test_a_gpu_that_cannot_be_metered_is_said_beside_the_counters(host: dict[str, Any]) -> None:
    two_sockets(Path(host["rapl"]["root"]))
    found = choose(options=host)
    assert (found.name, found.reason) == ("rapl", "")
    (choosing._GPUS / "0000:01:00.0").mkdir(parents=True)
    found = choose(options=host)
    assert (found.name, found.reason.partition(": ")[0]) == ("rapl", "no GPU reading")


def test_psys_holds_the_gpus_already(host: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    set_energy(write_zone(Path(host["rapl"]["root"]), "intel-rapl:0", "psys", 1), 2)
    calls = install(monkeypatch, [Gpu()])
    chosen = choose(options=host)
    assert (chosen.name, chosen.description.domains, calls.starts) == ("rapl", ("psys",), 0)
    assert "psys is the whole platform" in chosen.reason


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"watts": 5}, "meter auto has no option 'watts'"),
        ({"raple": {}}, "meter auto has no option 'raple'; did you mean 'rapl'"),
        ({"rapl": {"roo": "x"}}, "meter rapl has no option 'roo'; did you mean 'root'"),
        ({"rapl": "x"}, "`rapl` must be a mapping of that meter's options, but got 'x'"),
        ({"nvml": {"devices": 0}}, "`devices` must be a list of GPU numbers, but got 0"),
        ({"model": {"cpu": "Xeon"}}, "no CPU 'Xeon' in the table"),
    ],
)
def test_a_wrong_option_of_auto_is_refused_and_no_other_meter_is_taken(
    host: dict[str, Any], options: dict[str, Any], problem: str
) -> None:
    two_sockets(Path(host["rapl"]["root"]))
    with pytest.raises(OptionError, match=problem) as caught:
        choose(options={**host, **options})
    assert "\n" not in str(caught.value)
    with pytest.raises(OptionError, match=problem):
        check_options("auto", {**host, **options})


def test_a_gpu_that_was_asked_for_and_is_not_there_is_a_wrong_option(
    host: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, [Gpu()])
    with pytest.raises(OptionError, match=r"`devices` must lie in 0 \.\. 0, but got \[1\]"):
        choose(options={**host, "nvml": {"devices": [1]}})


def test_options_are_checked_without_opening_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    started = tmp_path / "started"
    for name, right, wrong in (
        ("rapl", {"root": str(tmp_path / "none")}, {"root": 5}),
        ("nvml", {"devices": [7]}, {"devices": ["7"]}),
        ("command", {"command": f"touch {started}"}, {"command": f"touch {started}", "timeout_seconds": 0}),
        ("codecarbon", {"interval_seconds": 2}, {"interval": 2}),
        ("constant", {"watts": 5}, {"watts": -5}),
        ("measure.power.third_party:Plug", {"watts": 5}, None),
    ):
        check_options(name, right)
        if wrong is not None:
            with pytest.raises(OptionError):
                check_options(name, wrong)
    assert not started.exists()
    with pytest.raises(MeterError, match=r"no\.csv cannot be read"):
        check_options("replay", {"path": str(tmp_path / "no.csv")})


def test_what_is_broken_is_not_taken_again_and_said(host: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    two_sockets(Path(host["rapl"]["root"]))
    install(monkeypatch, [Gpu()])
    found = choose(options=host, broken={"rapl": "rapl broke"})
    assert (found.name, found.reason) == ("nvml+model", "rapl broke")
    found = choose(options=host, broken={"nvml": "nvml broke"})
    assert (found.name, found.reason) == ("rapl", "nvml broke")
    found = choose(options=host, broken={"rapl": "rapl broke", "nvml": "nvml broke"})
    assert (found.name, found.reason) == ("model", "rapl broke; nvml broke")


def test_an_unknown_cpu_lists_a_few_names_once_and_says_where_all_are() -> None:
    with pytest.raises(OptionError) as caught:
        choose("model", {"cpu": "EPYC 9005"})
    text = str(caught.value)
    assert "did you mean 'EPYC 9005 (Turin)'?; known: default, " in text
    assert len(text) < 330
    assert Path(text.rpartition(" in ")[2]).is_file()


def test_every_meter_of_ours_is_registered() -> None:
    names = {"rapl", "nvml", "model", "constant", "replay", "command", "codecarbon"}
    assert names <= {plugin.name for plugin in registry.scan("power_meter")}
    assert registry.broken_power_meters() == []


def test_a_constant_power_knows_its_baseline() -> None:
    chosen = choose("constant", {"watts": 65})
    (sample,) = chosen.meter.read()
    assert (chosen.description.kind, sample.domain, sample.watts) == ("estimated", "node", 65)
    assert chosen.meter.idle_watts == {"node": 65}
    with pytest.raises(MeterError, match="needs the option `watts`"):
        choose("constant")
    with pytest.raises(MeterError, match=r"`watts` must be a number >= 0\.001, but got 0"):
        choose("constant", {"watts": 0})


@pytest.mark.usefixtures("broken")
def test_a_broken_meter_is_one_line_and_hurts_no_other(host: dict[str, Any]) -> None:
    for name, (_, problem) in BROKEN.items():
        with pytest.raises(MeterError, match=problem) as caught:
            choose(name)
        assert "\n" not in str(caught.value)
    assert len(registry.broken_power_meters()) == 3  # what is only seen when it is opened is not
    assert choose("plug", {"watts": 3}).meter.read()[0].watts == 3
    assert choose(options=host).name == "model"


def test_a_meter_of_single_slots_is_refused() -> None:
    with pytest.raises(MeterError, match=r"must meter the host or its GPUs, but meters single slots \(slot-0, a/slot-1\)"):
        choose("measure.power.third_party:Slots")


def test_a_meter_can_be_given_as_module_and_class() -> None:
    chosen = choose("measure.power.third_party:Plug")
    assert isinstance(chosen.meter, Plug)
    chosen.close()
    assert chosen.meter.is_closed
    with pytest.raises(MeterError, match="is not there: no module named 'no_such_module'"):
        choose("no_such_module:Plug")


def test_choosing_scans_no_distributions_and_imports_no_library(tmp_path: Path) -> None:
    code = (
        "import sys, importlib.metadata as m\n"
        "def refuse(**_): raise AssertionError('scanned')\n"
        "m.entry_points = refuse\n"
        "from tuneoff.measure.power.select_meter import choose\n"
        f"assert choose(options={{'rapl': {{'root': {str(tmp_path / 'none')!r}}}}}).name.endswith('model')\n"
        "print(sorted({'codecarbon', 'pydantic', 'numpy', 'urllib.request'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
