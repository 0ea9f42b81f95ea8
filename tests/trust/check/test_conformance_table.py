"""The table of docs/conformance.md: what `check --json` writes, a row per adapter and release."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import conformance_table
from tuneoff.base.findings import Report, failed, passed


def test_a_row_has_the_counts_and_names_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = [replace(passed(), id="best.trial"), replace(failed("left a process"), id="undeploy.twice")]
    values = {"label": "plain", "framework": "Plain 1.2", "runs": 3, "seconds": 7.6}
    report = Report(label="plain", findings=findings, check_count=2, values=values)
    path = tmp_path / "plain.json"
    path.write_text(json.dumps({"exit_code": 1, "adapters": [report.to_json()]}))
    monkeypatch.setattr(sys, "argv", ["conformance_table", str(path)])
    conformance_table.main()
    head, _, row = capsys.readouterr().out.splitlines()
    assert head == "| framework | runs, seconds | passed | failed | which failed |"  # no check was not tested
    assert row == "| Plain 1.2 | 3, 8 | 1 | 1 | `undeploy.twice` |"
