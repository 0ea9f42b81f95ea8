"""`sampler: fixed`: five adapters give the same bits of metrics per configuration and epoch, in a matrix that verifies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuneoff.cli.main import main
from tuneoff.measure.stored import read_runs
from tuneoff.record.run_record import RunRecord

pytestmark = pytest.mark.slow(first=True)

TRIALS = 2  # of the file's 20
EPOCHS = 2  # of 10
MATRIX = Path(__file__).parents[2] / "benchmarks" / "same_configurations.yaml"


def learning_curves(record: RunRecord) -> dict[str, list[dict[str, float | None]]]:
    """Return all metrics of each epoch by configuration, of the attempt that counts."""
    return {trial.digest: [epoch.metrics for epoch in trial.attempts[-1].epochs] for trial in record.trials}


def test_equal_configurations_give_equal_bits_in_every_adapter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fewer = {
        "configurations": {"sample": TRIALS, "seed": 0},
        "budget": {"trials": TRIALS, "epochs_per_trial": EPOCHS},
        "workers": {"count": 1, "cpus": 1},  # both in one process where a framework keeps it, each in its own where not
        "warm_up": False,
    }
    file = tmp_path / "fewer.yaml"
    file.write_text(json.dumps({"include": str(MATRIX), **fewer}))
    assert main(["compare", "--no-report", str(file), "--output", str(tmp_path / "results")]) == 0
    records = [record for record in read_runs(tmp_path / "results") if not record.run_spec().warm_up]
    curves = {record.run_spec().adapter: learning_curves(record) for record in records}
    assert set(curves) == {"serial", "optuna", "ray-tune", "syne-tune", "katib"}
    assert [len(curve) for curve in curves["serial"].values()] == [EPOCHS] * TRIALS
    assert len({json.dumps(curve) for curve in curves["serial"].values()}) == TRIALS  # other configurations, other values
    for adapter, found in curves.items():
        assert found == curves["serial"], f"{adapter} differs from serial"
    capsys.readouterr()
    assert main(["check", "--controls", str(tmp_path / "results"), "--json"]) == 0
    (control,) = json.loads(capsys.readouterr().out)["same_configurations"]
    assert (control["answer"], control["differences"]) == ("EQUAL", [])
    assert [(one["unequal"], one["configurations"], one["lacking"]) for one in control["adapters"]] == [(0, TRIALS, 0)] * 5

    assert main(["export", str(tmp_path / "results")]) == 0
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "results"), "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)["checked"]
    assert (checked["runs"], checked["samples"] > 0) == (5, True)
    first = min((tmp_path / "results").glob("runs/*/*/checkpoints/*.safetensors"))
    first.write_bytes(first.read_bytes()[:-1] + bytes([first.read_bytes()[-1] ^ 1]))  # control: one bit of a best model
    assert main(["verify", str(tmp_path / "results")]) == 1
    assert f"checkpoints/{first.name}: its SHA-256 is " in capsys.readouterr().out.splitlines()[0]
