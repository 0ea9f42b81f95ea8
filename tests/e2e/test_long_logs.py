"""What a training prints has a bound on the disk in every adapter, and its first and last words stay."""

from __future__ import annotations

from pathlib import Path

import pytest

import e2e.printing_workload as workload
from e2e.matrix_runs import start
from tuneoff.measure.stored import read_runs

pytestmark = pytest.mark.slow(first=True)

FILE = """
workload: e2e.printing_workload:Printing
adapters: [serial, optuna, syne-tune, ray-tune, {name: katib, platform: emulated}]
sampler: random
budget: {trials: 1, epochs_per_trial: 1}
workers: {count: 1}
warm_up: false
"""
PRINTED = workload.LINES * (len(workload.LINE) + 1)


def test_a_training_that_prints_much_leaves_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    file, results = tmp_path / "m.yaml", tmp_path / "results"
    file.write_text(FILE)
    assert start(file, results).wait(240) == 0
    for record in read_runs(results):  # what Ray prints lies in its temporary folder, which is removed
        adapter = record.run_spec().adapter
        folder = results / "runs" / record.run_id / record.execution_id
        large = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1_000_000]
        assert all(path.stat().st_size < 5_100_000 for path in large), adapter
        told = [flag.text for flag in record.flags if flag.name == "log_shortened"]
        assert (record.status, bool(told), bool(large)) == (
            "done",
            adapter != "ray-tune",
            adapter != "ray-tune",
        )
        for path in large:
            content = path.read_bytes()
            assert workload.FIRST.encode() in content[:100_000], path
            assert workload.LAST.encode() in content[-100_000:], path
            (note,) = [line for line in content.splitlines() if line.startswith(b"[tuneoff left out ")]
            assert PRINTED - 5_000_000 <= int(note.split()[3]) <= PRINTED
