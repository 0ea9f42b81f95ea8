"""Replay: a recorded power.jsonl, or a CSV file, on the time of the run; what no meter measures is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from builders.worked_examples import header, write_samples
from tuneoff.meter import MeterError
from tuneoff.record.samples.schema import Coefficients, Line, Note, PowerSample
from tuneoff_meters.replay import ReplayMeter

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
HEADER = header(
    "rapl", "measured", source="powercap: package-0", anchor_monotonic_ns=500 * SECOND, idle_watts={"package-0": 12.5}
)


def _jsonl(folder: Path, *lines: Line) -> ReplayMeter:
    return ReplayMeter({"path": str(write_samples(folder, lines))})


def _csv(folder: Path, text: str) -> ReplayMeter:
    (folder / "x.csv").write_text(text)
    return ReplayMeter({"path": str(folder / "x.csv")})


def _power(seconds: float, *, joules: float | None = None, watts: float | None = None) -> PowerSample:
    return PowerSample(t=round((500 + seconds) * SECOND), domain="package-0", joules=joules, watts=watts)


def _collected(meter: ReplayMeter, seconds: float) -> list[tuple[float, str, float | None]]:
    samples = meter.collect(START, START + round(seconds * SECOND))
    return [((sample.t - START) / SECOND, sample.domain, sample.joules) for sample in samples]


def test_a_recorded_run_is_on_the_time_of_each_run_with_what_was_strange_in_it(tmp_path: Path) -> None:
    lines = (HEADER, _power(-1, joules=7), _power(1, joules=9), Note(t=0, text="odd"), _power(2, joules=10), _power(3, joules=11))
    meter = _jsonl(tmp_path, *lines)
    assert (meter.description.kind, meter.description.source) == ("measured", "replay of power.jsonl: powercap: package-0")
    assert (meter.idle_watts, meter.problems) == ({"package-0": 12.5}, ("odd",))
    assert _collected(meter, 1.5) == [(-1, "package-0", 0), (1, "package-0", 2), (2, "package-0", 3)]


def test_a_table_says_its_kind_source_and_idle_power_and_its_watts_are_means(tmp_path: Path) -> None:
    about = "# kind: measured\n# source: a plug\n# idle node: 20\n"
    meter = _csv(tmp_path, f"{about}seconds,domain,watts\n0,node,5\n10,node,30\n0,gpu-0,1\n30,node,40\n")
    assert (meter.description.kind, meter.description.source) == ("measured", "replay of x.csv: a plug")
    assert (meter.idle_watts, meter.description.longest_gap_seconds) == ({"node": 20}, 2.5 * 15)
    assert _collected(meter, 12) == [(0, "node", 0), (10, "node", 300), (30, "node", 1100), (0, "gpu-0", 0)]
    assert _csv(tmp_path, "seconds,domain,joules\n0,node,5\n").description.kind == "estimated"


def test_a_recorded_model_is_a_model_again(tmp_path: Path) -> None:
    model = Coefficients(joules_per_cpu_second=20, watts_per_core=5, low=(1, 1), high=(30, 9), cpu="x", source="y")
    meter = _jsonl(tmp_path, msgspec.structs.replace(HEADER, kind="estimated", coefficients=model, idle_watts={}))
    assert meter.description.coefficients == model
    assert meter.collect(0, SECOND) == []


def test_a_recording_that_begins_after_the_run_is_an_error(tmp_path: Path) -> None:
    meter = _csv(tmp_path, "seconds,domain,watts\n100,node,5\n101,node,5\n")
    with pytest.raises(MeterError, match="begins 100 s after the run's start, but the run took 2 s"):
        meter.collect(START, START + 2 * SECOND)


RULE = "must hold seconds that grow, a domain, and watts >= 0 or a counter of joules that does not fall, but is"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("seconds,domain,watts\n0,node,5\n0,node,5\n", f"line 3 {RULE} '0,node,5'"),
        ("seconds,domain,watts\n0,node,-5\n", f"line 2 {RULE} '0,node,-5'"),
        ("seconds,domain,joules\n0,node,5\n1,node,4\n", f"line 3 {RULE} '1,node,4'"),
        ("# a\n\nseconds,domain,watts\n0,node,many\n", f"line 4 {RULE}"),
        ("seconds,domain,watts\n0,node,nan\n", f"line 2 {RULE}"),
        ("seconds,domain,watts\n0,node\n", f"line 2 {RULE}"),
        ("seconds,domain,watts\n0,,5\n", f"line 2 {RULE}"),
        ("seconds,watts\n0,5\n", "whose first row is seconds,domain,watts"),
        ("# kind: certain\nseconds,domain,watts\n0,node,5\n", "must be measured or estimated, but is 'certain'"),
        ("# idle node: much\nseconds,domain,watts\n0,node,5\n", "`# idle` must be finite watts, but is 'much'"),
        ("seconds,domain,watts\n", "holds no power samples"),
        ("", "must be a power.jsonl, or a CSV file"),
        ("{}\n", "line 1 is not a sample"),
        ("{", "holds no whole line"),
    ],
)
def test_what_no_meter_measures_is_one_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(MeterError) as caught:
        _csv(tmp_path, text)
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "x.csv" in str(caught.value)


def test_a_wrong_power_file_is_one_line(tmp_path: Path) -> None:
    for lines, problem in (
        ((_power(1, joules=1),), "has no header line"),
        ((msgspec.structs.replace(HEADER, version=9),), "has version 9"),
    ):
        with pytest.raises(MeterError, match=problem):
            _jsonl(tmp_path, *lines)
    with pytest.raises(MeterError, match="cannot be read: No such file"):
        ReplayMeter({"path": str(tmp_path / "nowhere")})
