"""The lines that a pod writes for Katib's collector."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tuneoff_adapters.katib.manifest import METRICS_FORMAT
from tuneoff_adapters.katib.metrics_file import FileReport, report_line


def test_a_clock_that_stands_still_or_goes_back_gives_rising_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tuneoff_adapters.katib import metrics_file

    moments = [datetime.fromisoformat("2026-01-01T12:00:00.000005Z")] * 2
    moments.append(moments[0] - timedelta(hours=1))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moments.pop(0)

    monkeypatch.setattr(metrics_file, "datetime", Clock)
    report = FileReport(str(tmp_path / "metrics.log"), "loss")
    for epoch in (1, 2, 3):
        report(epoch, {"loss": 0.5})
    lines = (tmp_path / "metrics.log").read_text().splitlines()
    assert [line.split()[0][-8:] for line in lines] == [".000005Z", ".000006Z", ".000007Z"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_the_report_refuses_what_would_stop_the_experiment(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        report_line(datetime.now(), value)


@pytest.mark.parametrize("value", [0.1 + 0.2, -1e-300, 1e22, 5e-324, 0.0, 123456789.0])
def test_katibs_own_pattern_reads_a_report_bit_for_bit(value: float) -> None:
    line = report_line(datetime.fromisoformat("2026-01-01T12:00:00Z"), value)
    ((name, text, *_),) = re.findall(METRICS_FORMAT, line.split(" ", 1)[1])
    assert name == "objective"
    assert float(text) == value
