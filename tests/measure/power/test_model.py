"""The model meter: coefficients from the table, or given; nothing is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tuneoff.measure.power.cpu_table import load_table
from tuneoff.measure.power.model_meter import ModelMeter
from tuneoff.meter import MeterError
from tuneoff.record.samples.schema import Coefficients


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


def test_coefficients_can_be_given() -> None:
    found = coefficients(joules_per_cpu_second=20, watts_per_core=5)
    assert (found.joules_per_cpu_second, found.watts_per_core, found.low, found.high) == (20, 5, (20, 5), (20, 5))
    bounded = coefficients(joules_per_cpu_second=20, watts_per_core=5, low=[10, 1], high=[30, 9])
    assert (bounded.low, bounded.high) == ((10, 1), (30, 9))


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
