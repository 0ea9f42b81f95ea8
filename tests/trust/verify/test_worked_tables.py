"""The worked examples' tables, in the records that lie on disk, in the exported trials, and by the command.

Each figure is held to the digits of its table: half a unit of the last one, and integers are exact.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from builders.results_folders import Results, edit, execution, write_examples
from builders.stored import derive_again
from tuneoff.measure.stored import read_run
from tuneoff.tell.frames.export import export

Figures = dict[str, float | None]
TRIAL_COLUMNS = ("busy_seconds", "energy_joules", "co2e_g", "waste_default_seconds")
TABLES: dict[
    str, dict[str, str | None]
] = {  # by adapter: metric or trial's column, and its figure as it stands there; None: null
    "serial": {
        "time.jct": "176000",
        "time.deploy": "10000",
        "time.setup": "2000",
        "time.trial": "150000",
        "time.result_collection": "2000",
        "time.test": "6000",
        "time.metric_collection": "1000",
        "time.undeploy": "5000",
        "time.preparation": "12000",
        "time.optimization": "160000",
        "time.evaluation": "8000",
        "time.result_collection_from_last_completed": "52000",
        "1.busy_seconds": "100",
        "2.busy_seconds": "60",
        "3.busy_seconds": "50",
        "energy.trial": "7.778e-4",
        "1.energy_joules": "4000",
        "2.energy_joules": "2400",
        "3.energy_joules": "2000",
        "energy.job": "10530",
        "energy.per_completed_trial": "5265",
        "carbon.trial_intensity": "266.7",
        "carbon.job_intensity": "260.2",
        "1.co2e_g": "0.2222",
        "2.co2e_g": "0.1333",
        "3.co2e_g": "0.2222",
        "carbon.job": "0.7611",
        "cost.job": "0.009778",
        "waste.default.time": "50000",
        "waste.default.energy": "5.556e-4",
        "waste.default.cost": "0.001389",
        "energy.idle": "1470",
        "energy.idle_share": "14.89",
        "slots.idle": "98",
        "slots.slot_time": "308",
        "slots.idle_share": "31.82",
    },
    "optuna": {
        "trials.used": "3",
        "trials.completed": "2",
        "trials.refused": "0",
        "slots.busy": "50",
        "slots.overhead": "12",
        "slots.idle": "16",
        "slots.slot_time": "78",
        "slots.idle_share": "20.51",
        "slots.overhead_share": "15.38",
        "slots.utilization": "67.57",
        "1.energy_joules": "430",
        "2.energy_joules": "495",
        "3.energy_joules": "265",
        "energy.trial": "1.1019e-4",
        "energy.idle": "80",
        "energy.job": "1670",
        "energy.per_completed_trial": "835",
        "energy.per_trained_epoch": "167",
        "epochs.trained": "10",
        "energy.idle_share": "5.56",
        "waste.default.time": "12000",
        "waste.default.energy": "7.778e-5",
        "waste.default.cost": "2.667e-4",
        "2.waste_default_seconds": "1",
        "3.waste_default_seconds": "11",
        "waste.post_goal.time": None,
        "waste.post_goal.energy": None,
        "waste.post_goal.cost": None,
        "waste.post_goal.core_time": None,
        "cost.job": "0.0023111",
        "stop_latency.median": "3000",
        "stop_latency.mean": "3000",
        "stop_latency.max": "3000",
        "time.result_collection": "1000",
        "time.result_collection_from_last_completed": "12000",
        "time.jct": "52000",
        "time.preparation": "6000",
        "time.optimization": "43000",
        "time.evaluation": "5000",
    },
}


def is_shown(value: float | None, figure: str | None) -> bool:
    """Tell whether a value is what a table shows: equal to half a unit of the last digit that stands there."""
    if value is None or figure is None:
        return value is None and figure is None
    shown = Decimal(figure)
    digits = shown.as_tuple().exponent
    assert isinstance(digits, int)
    slack = Decimal(10) ** digits / 2 if digits < 0 else abs(shown) / 10**9
    return abs(Decimal(value) - shown) <= slack


def figures_of(results: Path, adapter: str, scratch: Path) -> Figures:
    """Return every metric of an example's stored record, and `TRIAL.COLUMN` of its exported trials."""
    run = read_run(execution(results, adapter))
    export(results, scratch, "csv")
    with (scratch / "trials.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["run_id"] == run.run_id]
    columns = {f"{row['trial']}.{name}": float(row[name]) if row[name] else None for row in rows for name in TRIAL_COLUMNS}
    return {name: metric.value for name, metric in run.metrics.items()} | columns


@pytest.mark.parametrize("adapter", TABLES)
def test_the_figures_of_a_table_are_met(sound: Results, tmp_path: Path, adapter: str) -> None:
    figures = figures_of(sound.path, adapter, tmp_path)
    assert not {name: (figures[name], figure) for name, figure in TABLES[adapter].items() if not is_shown(figures[name], figure)}


def test_the_goal_that_is_missing_is_the_reason(sound: Results) -> None:
    metrics = read_run(execution(sound.path, "optuna")).metrics
    assert {metric.reason_if_null for name, metric in metrics.items() if name.startswith("waste.post_goal.")} == {"no goal"}


def test_the_folder_of_both_passes_the_command(sound: Results) -> None:
    command = [sys.executable, "-m", "tuneoff", "verify", str(sound.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("VERIFIED: 2 runs, 6 trials, ")


def test_a_figure_is_held_to_its_digits() -> None:
    met = ((7.7777777e-4, "7.778e-4"), (176000.0, "176000"), (14.8936, "14.89"), (0.0, "0"), (None, None))
    missed = ((7.7774e-4, "7.778e-4"), (176000.1, "176000"), (14.8, "14.89"), (1e-12, "0"), (0.0, None), (None, "0"))
    assert [is_shown(*pair) for pair in (*met, *missed)] == [True] * len(met) + [False] * len(missed)


def test_a_changed_sample_breaks_lines(tmp_path: Path) -> None:
    """The negative control: the figures come from the files."""
    results = write_examples(tmp_path / "results")
    folder = execution(results.path, "serial")
    edit(folder / "power.jsonl", lambda text: text.replace('"node":30.0', '"node":28.0'))
    derive_again(folder)
    assert not is_shown(read_run(folder).metrics["energy.job"].value, TABLES["serial"]["energy.job"])
