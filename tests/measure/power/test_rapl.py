"""RAPL: packages and DRAM once each, counters without their wraps, and three ways in which there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from measure.power.powercap import set_energy, two_sockets, write_zone
from tuneoff.base.files import read_regular
from tuneoff.meter import MeterError
from tuneoff_meters.rapl import ROOT, RaplMeter


def _open(root: Path) -> RaplMeter:
    return RaplMeter({"root": str(root)})


def _joules(meter: RaplMeter) -> dict[str, float]:
    found = {sample.domain: sample.joules for sample in meter.read()}
    assert all(joules is not None and joules >= 0 for joules in found.values())
    return {domain: joules for domain, joules in found.items() if joules is not None}


def _spend(folder: Path, joules: float) -> None:
    set_energy(folder, int((folder / "energy_uj").read_text()) + round(joules * 1e6))


def test_packages_and_their_dram_are_summed_and_nothing_that_lies_inside_them(tmp_path: Path) -> None:
    zones = two_sockets(tmp_path)
    meter = _open(tmp_path)
    assert meter.description.kind == "measured"
    assert meter.description.domains == ("package-0", "package-1", "dram-0", "dram-1")
    assert meter.description.source == "powercap: package-0, package-1, dram-0, dram-1"
    for folder in zones.values():
        _spend(folder, 10)
    assert _joules(meter) == {"package-0": 10, "package-1": 10, "dram-0": 10, "dram-1": 10}
    inside = tmp_path / "devices"  # as below /sys/devices: zones lie inside each other
    for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:0/intel-rapl:0:0", "dram")):
        write_zone(inside, zone, name, 10**9)
    assert _open(inside).description.domains == ("package-0", "dram-0")


def test_a_platform_counts_alone_and_only_where_there_is_no_package(tmp_path: Path) -> None:
    zones = {"intel-rapl:0": "psys", "intel-rapl:0:0": "dram", "intel-rapl:1": "psys"}
    for number, (zone, name) in enumerate(zones.items()):
        write_zone(tmp_path, zone, name, 10**9 * number)
    assert _open(tmp_path).description.domains == ("psys",)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 900_000_000), min_size=1, max_size=30), st.integers(0, 2_000_000_000))
def test_whatever_is_spent_is_counted_across_wraps(
    tmp_path_factory: pytest.TempPathFactory, spent: list[int], start: int
) -> None:
    root, range_uj = tmp_path_factory.mktemp("powercap"), 2_000_000_000
    folder = write_zone(root, "intel-rapl:0", "package-0", start, range_uj)
    meter, total = _open(root), 0
    for part in spent:
        total += part
        set_energy(folder, (start + total) % (range_uj + 1))
        assert _joules(meter)["package-0"] == pytest.approx(total / 1e6, abs=1e-7)


def test_a_counter_that_was_reset_is_said_and_adds_nothing(tmp_path: Path) -> None:
    folder = write_zone(tmp_path, "intel-rapl:0", "package-0", 100_000_000_000)
    meter = _open(tmp_path)
    _spend(folder, 3)
    assert _joules(meter) == {"package-0": 3}
    set_energy(folder, 0)  # as a wrap, this would be 162 kJ in no time
    with pytest.raises(MeterError, match="package-0 was reset"):
        meter.read()
    _spend(folder, 4)
    assert _joules(meter) == {"package-0": 7}
    (folder / "max_energy_range_uj").unlink()  # a counter of unknown range that falls is reset too
    meter = _open(tmp_path)
    set_energy(folder, 1_000_000)
    with pytest.raises(MeterError, match="was reset"):
        meter.read()


def test_zones_that_mirror_one_counter_count_once(tmp_path: Path) -> None:
    for die in range(4):
        write_zone(tmp_path, f"intel-rapl:{die}", f"package-{die}", 5_000_000_000 + 200_000 * die)
    meter = _open(tmp_path)
    assert meter.description.domains == ("package-0",)
    assert "package-3 mirrors package-0" in meter.description.source


def test_a_zone_that_is_lost_is_said_once_and_has_lost_no_energy_when_it_comes_back(tmp_path: Path) -> None:
    zones = two_sockets(tmp_path)
    meter, file = _open(tmp_path), zones["package-1"] / "energy_uj"
    before = file.read_text()
    file.write_text("")  # as a driver that is busy answers
    with pytest.raises(MeterError, match="package-1 cannot be read any more") as caught:
        meter.read()
    assert "\n" not in str(caught.value)
    assert set(_joules(meter)) == {"package-0", "dram-0", "dram-1"}
    file.write_text(before)
    _spend(zones["package-1"], 0.5)
    assert _joules(meter)["package-1"] == 0.5
    file.write_text("")
    with pytest.raises(MeterError, match="package-1 cannot be read any more"):
        meter.read()  # lost once more, and said once more


def test_no_folder_no_zone_and_no_right_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MeterError, match=r"no-powercap.*a virtual machine has none"):
        _open(tmp_path / "nowhere")
    (tmp_path / "intel-rapl").mkdir()
    write_zone(tmp_path, "dtpm:0", "pkg", 1)
    with pytest.raises(MeterError, match=r"no-rapl-zone.*load the kernel module"):
        _open(tmp_path)
    write_zone(tmp_path, "intel-rapl:0", "package-0", 1)
    _refuse(monkeypatch, PermissionError(13, "Permission denied"))
    with pytest.raises(MeterError, match=r"unreadable.*chmod.*udev.*CAP_DAC_READ_SEARCH"):
        _open(tmp_path)
    _refuse(monkeypatch, OSError(61, "No data available"))
    with pytest.raises(MeterError, match=r"unreadable.*package-0 does not answer: No data available"):
        _open(tmp_path)


def _refuse(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    """Let counters not be read; file modes would not stop root."""

    def refused(path: Path, most_bytes: int, *, follow: bool) -> bytes:
        if path.name == "energy_uj":
            raise error
        return read_regular(path, most_bytes, follow=follow)

    monkeypatch.setattr("tuneoff_meters.rapl.read_regular", refused)


def test_real_counters_grow() -> None:
    try:
        meter = RaplMeter({})
    except MeterError as error:
        pytest.skip(f"{ROOT}: {error}")
    first = _joules(meter)
    deadline = 2_000_000
    while (second := _joules(meter)) == first and deadline:
        deadline -= 1
    assert all(second[domain] >= first[domain] for domain in first)
    assert sum(second.values()) > sum(first.values())
