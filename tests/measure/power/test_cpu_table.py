"""The table of processors, how it is made, and the model of power that takes its rows."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import power_table
from benchmarks.power_table import problems
from tuneoff.measure.power.cpu_table import DEFAULT, TABLE, CpuIdentity, coefficients_of, entry, load_table, this_cpu
from tuneoff.measure.power.generations import AMD, INTEL
from tuneoff.measure.power.model_meter import ModelMeter
from tuneoff.meter import MeterError

AVX512 = frozenset({"avx2", "avx512f"})


@pytest.mark.parametrize(
    ("names", "published"),
    [
        (("EPYC 9005 (Turin)", "EPYC 9005 (Turin Dense)"), (41, 0.235, 1.32)),
        (("EPYC 9004 (Genoa)", "EPYC 9704 (Bergamo)"), (50, 0.283, 1.57)),
        (("EPYC 7003 (Milan)",), (28, 0.456, 1.96)),
    ],
)
def test_the_figures_that_were_published_for_three_groups_come_out(
    names: tuple[str, ...], published: tuple[int, float, float]
) -> None:
    rows = [load_table().generations[name] for name in names]
    count = sum(row.results for row in rows)
    idle, full = (
        sum(row.results * mean for row, mean in pairs) / count
        for pairs in ([(row, row.idle_mean) for row in rows], [(row, row.full_mean) for row in rows])
    )
    assert (count, round(idle, 3), round(full, 2)) == published


def test_the_table_is_plausible_and_its_default_is_of_servers_since_2023() -> None:
    table = load_table()
    assert problems(json.loads(TABLE.read_text())) == []
    assert "SPECpower" in table.source
    assert (table.default.results, table.default.first) == (287, 2023)
    assert [round(value, 2) for value in (*table.default.idle, *table.default.full)] == [0.21, 0.66, 1.75, 1.12, 2.75, 5.66]
    assert sum(row.results for row in table.generations.values()) > 600


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"idle_mean": 3.68, "full_mean": 12.5}, "must hold"),
        ({"idle": [2, 3, 4], "full": [1, 2, 3]}, "must hold"),
        ({"dynamic": [2, 1, 3]}, "quantiles of dynamic must rise"),
        ({"results": 5000}, "its pattern matches other CPUs"),
    ],
)
def test_an_implausible_row_is_named(changes: dict[str, Any], problem: str) -> None:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    table["generations"]["EPYC 9005 (Turin)"].update(changes)
    (line,) = problems(table)
    assert line.startswith("EPYC 9005 (Turin): ")
    assert problem in line


def cpu(vendor: str = INTEL, family: int = 6, model: int = -1, name: str = "", **more: Any) -> CpuIdentity:
    return CpuIdentity(vendor=vendor, family=family, model=model, name=name, **more)


@pytest.mark.parametrize(
    ("identity", "key"),
    [
        (cpu(model=106, stepping=6, name="Intel Xeon Processor"), "Xeon Scalable 3 (Ice Lake)"),
        (cpu(model=85, stepping=7), "Xeon Scalable 2 (Cascade Lake)"),
        (cpu(model=85, stepping=7, name="Intel(R) Xeon(R) Gold 6148 CPU"), "Xeon Scalable 1 (Skylake)"),  # its name is surer
        (cpu(AMD, 25, 160, "AMD EPYC"), "EPYC 9704 (Bergamo) or EPYC 8004 (Siena)"),
        (cpu(AMD, 25, 160, "AMD EPYC 9754 128-Core Processor"), "EPYC 9704 (Bergamo)"),
        (cpu(AMD, -1, -1, "AMD EPYC 9654 96-Core Processor"), "EPYC 9004 (Genoa)"),
        (cpu(model=143, flags=AVX512 | {"amx_tile", "fpu"}), "Xeon Scalable 4 (Sapphire Rapids)"),
    ],
)
def test_a_cpu_gets_its_generation_by_family_model_stepping_and_name(identity: CpuIdentity, key: str) -> None:
    coefficients, why_default = coefficients_of(identity)
    assert (coefficients.cpu, why_default) == (key, "")


def test_bounds_are_30_percent_at_least_and_span_all_that_a_cpu_may_be() -> None:
    row, known = load_table().generations["EPYC 7003 (Milan)"], entry("EPYC 7003 (Milan)")
    assert known.watts_per_core == row.idle[1]
    assert known.joules_per_cpu_second == pytest.approx(row.full[1] - row.idle[1])
    dynamic, idle = known.joules_per_cpu_second, known.watts_per_core
    assert known.low == pytest.approx((min(0.7 * dynamic, row.dynamic[0]), min(0.7 * idle, row.idle[0])), abs=1e-4)
    assert known.high == pytest.approx((max(1.3 * dynamic, row.dynamic[2]), max(1.3 * idle, row.idle[2])), abs=1e-4)
    either, _ = coefficients_of(cpu(model=85, name="Intel Xeon Processor"))
    single = [coefficients_of(cpu(model=85, stepping=number))[0] for number in (4, 7, 11)]
    assert either.cpu.count(" or ") == 2
    assert either.low == tuple(min(one.low[part] for one in single) for part in (0, 1))
    assert either.high == tuple(max(one.high[part] for one in single) for part in (0, 1))
    rows = [load_table().generations[name] for name in either.cpu.split(" or ")]
    assert (either.ratio, either.servers) == (entry(DEFAULT).ratio, entry(DEFAULT).servers), "one of them has too few servers"
    assert min(row.results for row in rows) < 30 <= load_table().generations["EPYC 7002 (Rome)"].results
    assert entry("EPYC 7002 (Rome)").servers == "36 servers with EPYC 7002 (Rome)"
    assert entry("EPYC 7002 (Rome)").ratio == (0.2523, 0.6965)


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        (cpu(model=167, name="Intel(R) Xeon(R) Processor", flags=AVX512 | {"amx_tile"}), "has amx_tile"),
        (cpu(AMD, 25, 1, "AMD EPYC", flags=AVX512), "but has avx512f: a hypervisor hides the model"),
        (cpu(model=85, stepping=4, name="Intel Xeon Processor (Skylake, IBRS)"), "hypervisor's own name"),
        (cpu(model=6, name="Common KVM processor"), "hypervisor's own name"),
        (cpu(model=154, name="12th Gen Intel(R) Core(TM) i7-1265U"), "is not in the table"),
        (CpuIdentity(), "unnamed CPU (no family and model) is not in the table"),
    ],
)
def test_what_is_masked_or_unknown_takes_the_default_and_says_why(identity: CpuIdentity, why: str) -> None:
    coefficients, why_default = coefficients_of(identity)
    default = load_table().default
    assert coefficients.cpu == "default (287 servers published since 2023)"
    assert why in why_default
    assert coefficients.low == (default.dynamic[0], default.idle[0])
    assert coefficients.high == (default.dynamic[2], default.idle[2])
    assert coefficients.watts_per_core == default.idle[1]


def test_cpuinfo_is_read_on_intel_and_on_arm(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    first = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Intel Xeon Processor\nstepping\t: 6\n"
    path.write_text(f"processor\t: 0\n{first}flags\t\t: fpu avx2\n\nprocessor\t: 1\nmodel\t\t: 1\n")
    assert this_cpu(path) == cpu(model=106, stepping=6, name="Intel Xeon Processor", flags=frozenset({"fpu", "avx2"}))
    path.write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: 0xd0c\n\n")
    assert coefficients_of(this_cpu(path))[0].cpu == "Neoverse N1 (Ampere Altra)"
    assert this_cpu(tmp_path / "nowhere") == CpuIdentity()


def test_the_model_is_an_estimate_and_has_no_domains(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("vendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\nmodel name : AMD EPYC\n\n")
    meter = ModelMeter({"cpuinfo": str(cpuinfo)})
    about = meter.description
    assert (about.kind, about.domains, list(meter.read())) == ("estimated", (), [])
    assert about.coefficients == entry("EPYC 7003 (Milan)")
    assert about.source == "watts per core of EPYC 7003 (Milan)"
    assert about.detail.startswith("EPYC 7003 (Milan): 1.49 (")
    unknown = ModelMeter({"cpuinfo": str(tmp_path / "none")}).description
    assert unknown.source == "watts per core of the default server"
    assert unknown.detail.startswith("default (287 servers published since 2023): 2.09 (0.914 to 4.05) J per CPU second, 0.66 (")
    assert unknown.detail.endswith("; unnamed CPU (no family and model) is not in the table")
    given = ModelMeter({"joules_per_cpu_second": 20, "watts_per_core": 5, "low": [10, 2]}).description
    assert given.source == "watts per core as given"
    assert given.coefficients is not None
    assert (given.coefficients.low, given.coefficients.high) == ((10, 2), (20, 5))
    assert ModelMeter({"cpu": "EPYC 7002 (Rome)"}).description.coefficients == entry("EPYC 7002 (Rome)")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"watts_per_core": 5}, "need both `joules_per_cpu_second` and `watts_per_core`"),
        ({"joules_per_cpu_second": -1, "watts_per_core": 5}, "`joules_per_cpu_second`: Expected `float` >= 0.0, but got -1"),
        ({"joules_per_cpu_second": 1, "watts_per_core": 5, "low": 3}, "`low`: Expected `array . null`, got `int`, but got 3"),
        ({"joules_per_cpu_second": 1, "watts_per_core": 5, "low": [2, 2]}, "low <= value <= high"),
        ({"joules_per_cpu_second": 1, "watts_per_core": 5, "cpu": "x"}, "either `cpu` or coefficients"),
        ({"cpu": "EPYC 7002"}, "no CPU 'EPYC 7002' in the table; did you mean"),
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
        writer.writerows([cpu, idle, full, threads, 2, published] for cpu, idle, full, threads, published in rows)
    return path


def _enough(cpu: str, year: int, count: int = 5) -> list[tuple[str, float, float, int, str]]:
    return [(cpu, 50 + number, 200 + number, 100, f"May-{year}") for number in range(count)]


def test_watts_are_per_thread_and_rows_by_generation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        *_enough(MILAN, 2022),
        *_enough(TURIN, 2024),
        *_enough("Intel Xeon X5570", 2009),
        ("AMD EPYC 9654", 50, 200, 100, "May-2023"),
    ]
    assert power_table.main([str(_file(tmp_path / "results.csv", *rows))]) == 0
    table = json.loads(capsys.readouterr().out)
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


def test_wrong_results_are_refused(tmp_path: Path) -> None:
    path = _file(tmp_path / "results.csv", (MILAN, 200, 100, 10, "May-2022"))
    with pytest.raises(ValueError, match="line 2: `0 < idle < full` must hold"):
        power_table.read_results(path)
    path.write_text("CPU Description,Published\n")
    with pytest.raises(ValueError, match=r"lacks avg\. watts @ active idle"):
        power_table.read_results(path)
