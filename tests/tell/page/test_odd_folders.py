"""Every kind of folder gives a readable report, that counts what is in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from builders.made_runs import made_spec
from builders.page_folders import Change, failed, folder, never, specs, without_trials
from tell.page.documents import Document, faults
from tuneoff.tell.page.report import write_report

TWO = specs(["serial", "optuna"], 3)
CASES: dict[str, tuple[Sequence[object], Mapping[int, Change], Sequence[int], dict[str, int]]] = {
    "all done": (TWO, {}, (), {"done": 6}),
    "each way to end": (
        TWO,
        {
            1: failed("failed", "it broke"),
            2: failed("timeout", "trials: 60 s are over"),
            5: failed("interrupted", "SIGINT"),
        },
        (),
        {"done": 3, "failed": 1, "timeout": 1, "interrupted": 1},
    ),
    "skipped": (TWO, {}, (1, 3, 5), {"done": 3, "skipped": 3}),
    "zero trials": (TWO, {0: without_trials}, (), {"done": 5, "failed": 1}),
    "a single seed": (specs(["serial", "optuna"], 1), {}, (), {"done": 2}),
    "a single adapter": (specs(["serial"], 3), {}, (), {"done": 3}),
    "aborted": (TWO, dict.fromkeys(range(2, 6), never), (), {"done": 2, "planned": 4}),
    "not begun": (TWO, dict.fromkeys(range(6), never), (), {"planned": 6}),
    "everything failed": (TWO, dict.fromkeys(range(6), failed("failed", "it broke")), (), {"failed": 6}),
    "everything skipped": (TWO, {}, tuple(range(6)), {"skipped": 6}),
    "an entry twice": ([*TWO, *[made_spec(seed=seed, replicate=1) for seed in range(3)]], {}, (), {"done": 9}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_odd_folder_gives_a_readable_report_that_counts_it(case: str, tmp_path: Path) -> None:
    planned, changes, skipped, statuses = CASES[case]
    path = write_report(folder(tmp_path / "r", planned, changes, skipped))  # type: ignore[arg-type]
    assert path == tmp_path / "r" / "report" / "report.html"
    text = path.read_text()
    assert faults(text) == []
    document = Document(text)
    (counted,) = [" ".join(one.text.split()) for one in document.all("p") if one.attributes.get("class") == "statuses"]
    found = {name: int(count) for count, name in re.findall(r"(\d+) \S (\w+)", counted)}
    assert found == statuses
    assert counted.startswith(f"Of {len(planned)} planned runs")
    rows = [one for one in document.all("tr") if one.attributes.get("id", "").startswith("run-")]
    assert len(rows) == len(planned)
    for name, count in statuses.items():
        assert sum(f" {name}" in row.text for row in rows) >= count
    assert "Traceback" not in text
    assert not re.search(r"\bNone\b|\bnan\b", " ".join(one.text for one in document.all("td", "dd", "li")))


def test_an_earlier_execution_is_counted_beside_the_one_that_stands(tmp_path: Path) -> None:
    from dataclasses import replace

    from builders.page_folders import record
    from tell.page.conftest import made_page
    from tuneoff.record.store import write_run

    path = folder(tmp_path / "r", specs(["serial"], 1))
    spec = specs(["serial"], 1)[0]
    earlier = replace(record(spec), execution_id=f"{spec.run_id}-0", status="interrupted", reason="SIGINT")
    where = path / "runs" / spec.run_id / earlier.execution_id
    where.mkdir()
    write_run(where, earlier)
    text = made_page(path)
    assert "of 2 executions" in text
    assert faults(text) == []
