"""Replay: a recorded power.jsonl, or a CSV file, on the time of the run; what no meter measures is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tuneoff.meter import MeterError
from tuneoff.record.samples.schema import Coefficients, Header, PowerSample
from tuneoff_meters.replay import ReplayMeter

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
HEADER = Header(
    version=1,
    host="there",
    boot_id="b",
    execution_id="e",
    anchor_monotonic_ns=500 * SECOND,
    anchor_wall_ns=9 * SECOND,
    anchor_width_ns=100,
    meter="rapl",
    kind="measured",
    source="powercap: package-0",
    domains=("package-0",),
    idle_watts={"package-0": 12.5},
)


def _write(path: Path, *lines: msgspec.Struct) -> ReplayMeter:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return ReplayMeter({"path": str(path)})


def _csv(path: Path, text: str) -> ReplayMeter:
    path.write_text(text)
    return ReplayMeter({"path": str(path)})


def _power(seconds: float, domain: str = "package-0", *, joules: float | None = None, watts: float | None = None) -> PowerSample:
    return PowerSample(t=round((500 + seconds) * SECOND), domain=domain, joules=joules, watts=watts)


def test_a_recorded_model_is_a_model_again(tmp_path: Path) -> None:
    model = Coefficients(joules_per_cpu_second=20, watts_per_core=5, low=(1, 1), high=(30, 9), cpu="x", source="y")
    header = msgspec.structs.replace(HEADER, kind="estimated", coefficients=model, domains=(), idle_watts={})
    meter = _write(tmp_path / "power.jsonl", header)
    assert meter.description.coefficients == model
    assert meter.collect(0, SECOND) == []


def test_a_recording_that_begins_after_the_run_is_an_error(tmp_path: Path) -> None:
    meter = _csv(tmp_path / "x.csv", "seconds,domain,watts\n100,node,5\n101,node,5\n")
    with pytest.raises(MeterError, match="begins 100 s after the run's start, but the run took 2 s"):
        meter.collect(START, START + 2 * SECOND)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seconds,domain,watts\n0,node,5\n0,node,5\n", "line 3: a sample of node at 0 s must be later than the one before it"),
        ("seconds,domain,watts\n0,node,-5\n", "line 2: a sample of node must be >= 0, but is -5"),
        ("seconds,domain,joules\n0,node,5\n1,node,4\n", "must not fall from 5 to 4 J"),
        ("seconds,domain,watts\n0,node,many\n", "line 2 must hold finite numbers, but has 'many'"),
        ("seconds,domain,watts\n0,node,nan\n", "must hold finite numbers"),
        ("seconds,domain,watts\n0,node\n", "line 2 must have 3 values, but has 2"),
        ("seconds,domain,watts\n0,,5\n", "a sample needs a domain"),
        ("seconds,watts\n0,5\n", "whose first row is seconds,domain,watts"),
        ("# kind: certain\nseconds,domain,watts\n0,node,5\n", "must be measured or estimated, but is 'certain'"),
        ("# idle node: much\nseconds,domain,watts\n0,node,5\n", "comment must hold finite numbers"),
        ("seconds,domain,watts\n", "holds no power samples"),
        ("", "must be a power.jsonl, or a CSV file"),
        ("{}\n", "line 1 is not a sample"),
    ],
)
def test_what_no_meter_measures_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(MeterError, match=problem) as caught:
        _csv(tmp_path / "file", text)
    assert "\n" not in str(caught.value)
    assert "file" in str(caught.value)


def test_a_wrong_power_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "power.jsonl"
    with pytest.raises(MeterError, match="must begin with a header line"):
        _write(path, _power(1, joules=1), HEADER)
    with pytest.raises(MeterError, match="has version 9, not 1"):
        _write(path, msgspec.structs.replace(HEADER, version=9))
    with pytest.raises(MeterError, match="must have either joules or watts"):
        _write(path, HEADER, _power(1))
    with pytest.raises(MeterError, match="must be in the unit of those before it"):
        _write(path, HEADER, _power(1, joules=1), _power(2, watts=1))
    with pytest.raises(MeterError, match="cannot be read: No such file"):
        ReplayMeter({"path": str(tmp_path / "nowhere")})
    with pytest.raises(MeterError, match="`path` must be a text, but it is missing"):
        ReplayMeter({})
