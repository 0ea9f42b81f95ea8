"""The table of processors, how it is made, and the model of power that takes its rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import power_table
from tuneoff.measure.power.cpu_table import KNOWN_SPREAD, TABLE, CpuIdentity, load_table, problems, this_cpu, watts_for
from tuneoff.measure.power.generations import AMD, GENERATIONS, INTEL
from tuneoff.measure.power.model_meter import ModelMeter
from tuneoff.meter import MeterError
from tuneoff.record.samples.schema import Coefficients

AVX512 = frozenset({"avx2", "avx512f"})


def _means(*names: str) -> tuple[int, float, float]:
    """Return count and means of idle and full over several rows."""
    rows = [load_table().generations[name] for name in names]
    count = sum(row.results for row in rows)
    idle, full = (
        sum(row.results * value for row, value in zip(rows, values, strict=True)) / count
        for values in ([row.idle_mean for row in rows], [row.full_mean for row in rows])
    )
    return count, idle, full


def test_the_figures_that_were_published_for_three_groups_come_out() -> None:
    count, idle, full = _means("EPYC 9005 (Turin)", "EPYC 9005 (Turin Dense)")
    assert (count, round(idle, 3), round(full, 2)) == (41, 0.235, 1.32)
    count, idle, full = _means("EPYC 9004 (Genoa)", "EPYC 9704 (Bergamo)")
    assert (count, round(idle, 2), round(full, 2)) == (50, 0.28, 1.57)
    count, idle, full = _means("EPYC 7003 (Milan)")
    assert (count, round(idle, 2), round(full, 2)) == (28, 0.46, 1.96)


def test_the_default_is_that_of_servers_since_2023() -> None:
    default = load_table().default
    assert (default.results, default.first) == (287, 2023)
    assert [round(value, 2) for value in default.idle] == [0.21, 0.66, 1.75]
    assert [round(value, 2) for value in default.full] == [1.12, 2.75, 5.66]


def test_the_table_is_plausible_and_says_where_it_is_from() -> None:
    table = load_table()
    assert problems(json.loads(TABLE.read_text())) == []
    assert "SPECpower" in table.source
    assert table.date[:2] == "20"
    assert set(table.generations) <= {generation.key for generation in GENERATIONS}
    assert all(row.results >= 4 for row in table.generations.values())
    known = sum(row.results for row in table.generations.values())
    assert known > 600


def _table(**changes: Any) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    table["generations"]["EPYC 9005 (Turin)"].update(changes)
    return table


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"idle_mean": 3.68, "full_mean": 12.5}, "must hold"),
        ({"idle": [0.01, 0.05, 0.1]}, "must hold"),
        ({"idle": [2, 3, 4], "full": [1, 2, 3]}, "must hold"),
        ({"dynamic": [2, 1, 3]}, "quantiles of dynamic must rise"),
        ({"results": 5000}, "its pattern matches other CPUs"),
    ],
)
def test_an_implausible_row_is_named(changes: dict[str, Any], problem: str) -> None:
    (found,) = problems(_table(**changes))
    assert found.startswith("EPYC 9005 (Turin): ")
    assert problem in found


@pytest.mark.parametrize(
    ("vendor", "family", "model", "stepping", "key"),
    [
        (INTEL, 6, 106, 6, "Xeon Scalable 3 (Ice Lake)"),
        (INTEL, 6, 143, 8, "Xeon Scalable 4 (Sapphire Rapids)"),
        (INTEL, 6, 173, 1, "Xeon 6 P-cores (Granite Rapids)"),
        (INTEL, 6, 85, 4, "Xeon Scalable 1 (Skylake)"),
        (INTEL, 6, 85, 7, "Xeon Scalable 2 (Cascade Lake)"),
        (INTEL, 6, 85, 11, "Xeon Scalable 3 (Cooper Lake)"),
        (AMD, 25, 1, 1, "EPYC 7003 (Milan)"),
        (AMD, 25, 17, 1, "EPYC 9004 (Genoa)"),
        (AMD, 26, 2, 1, "EPYC 9005 (Turin)"),
    ],
)
def test_a_guest_without_a_number_gets_its_generation_by_family_and_model(
    vendor: str, family: int, model: int, stepping: int, key: str
) -> None:
    name = "AMD EPYC" if vendor == AMD else "Intel Xeon Processor"
    found = watts_for(CpuIdentity(vendor=vendor, family=family, model=model, stepping=stepping, name=name))
    row = load_table().generations[key]
    assert (found.entry, found.why_default) == (key, "")
    assert found.idle == row.idle[1]
    assert found.idle + found.dynamic == pytest.approx(row.full[1])
    spread = 1e-4  # of rounding
    assert found.low[0] <= min(found.dynamic * (1 - KNOWN_SPREAD), row.dynamic[0]) + spread
    assert found.high[1] >= max(found.idle * (1 + KNOWN_SPREAD), row.idle[2]) - spread


def test_generations_that_cannot_be_told_apart_span_each_others_bounds() -> None:
    found = watts_for(CpuIdentity(vendor=INTEL, family=6, model=85, name="Intel Xeon Processor"))
    single = [watts_for(CpuIdentity(vendor=INTEL, family=6, model=85, stepping=number)) for number in (4, 7, 11)]
    assert found.entry.count(" or ") == 2
    assert found.low[1] <= min(one.low[1] for one in single)
    assert found.high[0] >= max(one.high[0] for one in single)


@pytest.mark.parametrize(
    ("cpu", "why"),
    [
        (
            CpuIdentity(vendor=INTEL, family=6, model=167, name="Intel(R) Xeon(R) Processor", flags=AVX512 | {"amx_tile"}),
            "has amx_tile",
        ),
        (
            CpuIdentity(vendor=AMD, family=25, model=1, name="AMD EPYC", flags=AVX512),
            "but has avx512f: a hypervisor hides the model",
        ),
        (
            CpuIdentity(vendor=INTEL, family=6, model=85, stepping=4, name="Intel Xeon Processor (Skylake, IBRS)"),
            "hypervisor's own name",
        ),
        (CpuIdentity(vendor=AMD, family=25, model=1, name="AMD EPYC-Milan Processor"), "hypervisor's own name"),
        (CpuIdentity(vendor=INTEL, family=15, model=6, name="Common KVM processor"), "hypervisor's own name"),
        (CpuIdentity(vendor=INTEL, family=6, model=154, name="12th Gen Intel(R) Core(TM) i7-1265U"), "is not in the table"),
        (CpuIdentity(), "unnamed CPU (no family and model) is not in the table"),
    ],
)
def test_what_is_masked_or_unknown_takes_the_default_and_says_why(cpu: CpuIdentity, why: str) -> None:
    found, default = watts_for(cpu), load_table().default
    assert found.entry == "default (287 servers published since 2023)"
    assert why in found.why_default
    assert (found.low, found.high) == ((default.dynamic[0], default.idle[0]), (default.dynamic[2], default.idle[2]))
    assert found.idle == default.idle[1]


@pytest.mark.parametrize(
    ("cpu", "entry"),
    [
        (CpuIdentity(vendor=AMD, family=25, model=160, name="AMD EPYC"), "EPYC 9704 (Bergamo) or EPYC 8004 (Siena)"),
        (CpuIdentity(vendor=AMD, family=25, model=160, name="AMD EPYC 9754 128-Core Processor"), "EPYC 9704 (Bergamo)"),
        (CpuIdentity(vendor=AMD, name="AMD EPYC 9654 96-Core Processor"), "EPYC 9004 (Genoa)"),
        (CpuIdentity(vendor=INTEL, family=6, model=143, flags=AVX512 | {"amx_tile", "fpu"}), "Xeon Scalable 4 (Sapphire Rapids)"),
    ],
    ids=["two of one model", "told apart by its name", "its name alone", "flags that a generation has"],
)
def test_names_and_flags_tell_what_family_and_model_do_not(cpu: CpuIdentity, entry: str) -> None:
    assert watts_for(cpu).entry == entry


def test_cpuinfo_is_read_on_intel_and_on_arm(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    first = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Intel Xeon Processor\nstepping\t: 6\n"
    path.write_text(f"processor\t: 0\n{first}flags\t\t: fpu avx2\n\nprocessor\t: 1\nmodel\t\t: 1\n")
    cpu = this_cpu(path)
    assert (cpu.vendor, cpu.id, cpu.stepping, cpu.name, cpu.flags) == (
        INTEL,
        (6, 106),
        6,
        "Intel Xeon Processor",
        frozenset({"fpu", "avx2"}),
    )
    path.write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n\n")
    assert watts_for(this_cpu(path)).entry == "Neoverse N1 (Ampere Altra)"
    assert this_cpu(tmp_path / "nowhere") == CpuIdentity()


def test_the_model_is_an_estimate_and_has_no_domains(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nmodel name : AMD EPYC\n\n")
    meter = ModelMeter({"cpuinfo": str(cpuinfo)})
    about, row = meter.description, load_table().generations["EPYC 7003 (Milan)"]
    assert (about.kind, about.domains, list(meter.read())) == ("estimated", (), [])
    assert about.coefficients is not None
    assert about.coefficients.watts_per_core == row.idle[1]
    assert about.coefficients.joules_per_cpu_second == pytest.approx(row.full[1] - row.idle[1])
    assert about.coefficients.low < (about.coefficients.joules_per_cpu_second, 0) < about.coefficients.high
    assert load_table().date in about.coefficients.source
    assert about.source == "watts per core of EPYC 7003 (Milan)"
    assert about.detail.startswith("EPYC 7003 (Milan): 1.49 (")
    meter.close()


def test_an_unknown_cpu_is_said_in_the_source_and_its_figures_beside_it(tmp_path: Path) -> None:
    about = ModelMeter({"cpuinfo": str(tmp_path / "none")}).description
    assert about.source == "watts per core of the default server"
    assert about.detail.startswith("default (287 servers published since 2023): 2.09 (0.914 to 4.05) J per CPU second, 0.66 (")
    assert about.detail.endswith("; unnamed CPU (no family and model) is not in the table")
    assert ModelMeter({"joules_per_cpu_second": 20, "watts_per_core": 5}).description.source == "watts per core as given"


def coefficients(**options: Any) -> Coefficients:
    found = ModelMeter(options).description.coefficients
    assert found is not None
    return found


def test_another_cpu_of_the_table_can_be_taken() -> None:
    assert coefficients(cpu="EPYC 7002 (Rome)").cpu == "EPYC 7002 (Rome)"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"watts_per_core": 5}, "needs the option `joules_per_cpu_second`"),
        ({"joules_per_cpu_second": -1, "watts_per_core": 5}, "must be a number >= 0, but got -1"),
        ({"joules_per_cpu_second": True, "watts_per_core": 5}, "must be a number >= 0, but got True"),
        ({"joules_per_cpu_second": 1, "watts_per_core": 5, "low": 3}, "`low` must be two numbers"),
        ({"joules_per_cpu_second": 1, "watts_per_core": 5, "low": [2, 2]}, "low <= value <= high"),
        ({"joules_per_cpu_second": 1, "watts_per_core": 5, "cpu": "x"}, "either `cpu` or coefficients"),
        ({"cpu": "EPYC 7002"}, "no CPU 'EPYC 7002' in the table; did you mean"),
        ({"cpu": 7}, "`cpu` must be a text"),
        ({"wats": 5}, "has no option 'wats'"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(MeterError, match=problem) as caught:
        ModelMeter(options)
    assert "\n" not in str(caught.value)


MILAN, TURIN = "AMD EPYC 7763", "AMD EPYC 9755"


def _file(path: Path, *rows: tuple[str, float, float, int, str]) -> Path:
    """Write results of (CPU, idle watts, full watts, threads, month of publication)."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(power_table.COLUMNS)
        for cpu, idle, full, threads, published in rows:
            writer.writerow([cpu, idle, full, threads, 2, published])
    return path


def _enough(cpu: str, year: int, count: int = 5) -> list[tuple[str, float, float, int, str]]:
    return [(cpu, 50 + number, 200 + number, 100, f"May-{year}") for number in range(count)]


def test_watts_are_per_thread_and_rows_by_generation(tmp_path: Path) -> None:
    rows = [
        *_enough(MILAN, 2022),
        *_enough(TURIN, 2024),
        *_enough("Intel Xeon X5570", 2009),
        ("AMD EPYC 9654", 50, 200, 100, "May-2023"),
    ]
    table = power_table.derive(power_table.read_results(_file(tmp_path / "results.csv", *rows)))
    assert list(table["generations"]) == ["EPYC 7003 (Milan)", "EPYC 9005 (Turin)"]  # one Genoa is too few, Nehalem too old
    assert table["generations"]["EPYC 7003 (Milan)"] == {
        "results": 5,
        "first": 2022,
        "last": 2022,
        "idle_mean": 0.52,
        "full_mean": 2.02,
        "idle": [0.502, 0.52, 0.538],
        "full": [2.002, 2.02, 2.038],
        "dynamic": [1.5, 1.5, 1.5],
        "ratio": [0.3347, 0.3467, 0.3587],  # 0.50 to 0.54 over 1.5, at 5, 50 and 95 %
    }
    assert table["default"]["results"] == 6


def test_the_command_writes_the_table_as_it_ships(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _file(tmp_path / "results.csv", *_enough(MILAN, 2023), *_enough(TURIN, 2024))
    assert power_table.main([str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == power_table.derive(power_table.read_results(path))


def test_wrong_results_are_refused(tmp_path: Path) -> None:
    path = _file(tmp_path / "results.csv", (MILAN, 200, 100, 10, "May-2022"))
    with pytest.raises(ValueError, match="line 2: `0 < idle < full` must hold"):
        power_table.read_results(path)
    path.write_text("CPU Description,Published\n")
    with pytest.raises(ValueError, match=r"lacks avg\. watts @ active idle"):
        power_table.read_results(path)
