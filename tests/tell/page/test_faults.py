"""The fault matrix beside the results: a table per setting, and one line where the file is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuneoff.errors import ResultsError
from tuneoff.tell.page.runs import fault_tables


def matrix_file(folder: Path) -> Path:
    runs = [
        {"adapter": adapter, "setting": setting, "fault": fault, "outcome": outcome, "reason": "x", "wasted_seconds": 1.0}
        for adapter, outcome in (("serial", "recovered"), ("optuna", "silently wrong"), ("ray", None))
        for setting in ("defaults", "adapter")
        for fault in ("none", "raise", "one<of>ours")
    ]
    path = folder / "faults.json"
    path.write_text(json.dumps({"about": {}, "runs": runs, "exit_code": 0}))
    return path


def test_a_fault_matrix_beside_the_results_is_a_table_per_setting(tmp_path: Path) -> None:
    assert fault_tables(tmp_path) == []
    matrix_file(tmp_path)
    tables = fault_tables(tmp_path)
    assert [table.title for table in tables] == ["The framework's own defaults", "The adapter's settings"]
    for table in tables:
        assert table.frameworks == ("serial", "optuna", "ray")
        assert {fault for fault, _ in table.rows} == {"none", "raise", "one<of>ours"}
        for _, cells in table.rows:
            assert [(cell.text, cell.is_serious) for cell in cells] == [
                ("recovered", False),
                ("silently wrong", True),
                ("–", False),
            ]


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": 3}', '{"runs": [{"adapter": "x"}]}', "[" * 200_000], ids=len)
def test_a_damaged_fault_matrix_is_one_line(tmp_path: Path, text: str) -> None:
    path = matrix_file(tmp_path)
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"faults\.json is not what `tuneoff faults --json` writes: .*; write it again"):
        fault_tables(tmp_path)
