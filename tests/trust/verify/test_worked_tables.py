"""The worked examples' tables, line by line, in the records that lie on disk, in the exported trials, and by the command.

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

Lines = dict[str, dict[str, str | None]]  # line of the table: metric or trial's column -> figure as it stands there; None: null

TABLE_A: Lines = {
    "JCT; partition": {
        "time.jct": "176000",
        "time.deploy": "10000",
        "time.setup": "2000",
        "time.trial": "150000",
        "time.result_collection": "2000",
        "time.test": "6000",
        "time.metric_collection": "1000",
        "time.undeploy": "5000",
    },
    "spans": {
        "time.preparation": "12000",
        "time.optimization": "160000",
        "time.evaluation": "8000",
        "time.result_collection_from_last_completed": "52000",
    },
    "busy per trial": {"1.busy_seconds": "100", "2.busy_seconds": "60", "3.busy_seconds": "50"},
    "TWH": {
        "energy.trial": "7.778e-4",
        "1.energy_joules": "4000",
        "2.energy_joules": "2400",
        "3.energy_joules": "2000",
    },
    "job energy; per completed trial": {"energy.job": "10530", "energy.per_completed_trial": "5265"},
    "CINT; JCINT": {
        "carbon.trial_intensity": "266.7",
        "carbon.job_intensity": "260.2",
    },
    "CO2e of trials; of the job; OC": {
        "1.co2e_g": "0.2222",
        "2.co2e_g": "0.1333",
        "3.co2e_g": "0.2222",
        "carbon.job": "0.7611",
        "cost.job": "0.009778",
    },
    "waste default": {
        "waste.default.time": "50000",
        "waste.default.energy": "5.556e-4",
        "waste.default.cost": "0.001389",
    },
    "WR; idle time": {
        "energy.idle": "1470",
        "energy.idle_share": "14.89",
        "slots.idle": "98",
        "slots.slot_time": "308",
        "slots.idle_share": "31.82",
    },
}

TABLE_B: Lines = {
    "N; N_c; tickets refused": {"trials.used": "3", "trials.completed": "2", "trials.refused": "0"},
    "busy; overhead; idle; slot time": {
        "slots.busy": "50",
        "slots.overhead": "12",
        "slots.idle": "16",
        "slots.slot_time": "78",
    },
    "idle time; overhead; utilization": {
        "slots.idle_share": "20.51",
        "slots.overhead_share": "15.38",
        "slots.utilization": "67.57",
    },
    "E of trials; TWH": {
        "1.energy_joules": "430",
        "2.energy_joules": "495",
        "3.energy_joules": "265",
        "energy.trial": "1.1019e-4",
    },
    "idle": {"energy.idle": "80"},
    "job energy; per completed trial; per trained epoch": {
        "energy.job": "1670",
        "energy.per_completed_trial": "835",
        "energy.per_trained_epoch": "167",
        "epochs.trained": "10",
    },
    "WR": {"energy.idle_share": "5.56"},
    "waste default": {
        "waste.default.time": "12000",
        "waste.default.energy": "7.778e-5",
        "waste.default.cost": "2.667e-4",
        "2.waste_default_seconds": "1",
        "3.waste_default_seconds": "11",
    },
    "post_goal": {
        "waste.post_goal.time": None,
        "waste.post_goal.energy": None,
        "waste.post_goal.cost": None,
        "waste.post_goal.core_time": None,
    },
    "OC": {"cost.job": "0.0023111"},
    "stop latency; collection; from the last completed trial": {
        "stop_latency.median": "3000",
        "stop_latency.mean": "3000",
        "stop_latency.max": "3000",
        "time.result_collection": "1000",
        "time.result_collection_from_last_completed": "12000",
    },
    "JCT; preparation; optimization; evaluation": {
        "time.jct": "52000",
        "time.preparation": "6000",
        "time.optimization": "43000",
        "time.evaluation": "5000",
    },
}
TABLES = {"serial": TABLE_A, "optuna": TABLE_B}
LINES = [(adapter, line) for adapter, table in TABLES.items() for line in table]


def is_shown(value: float | None, figure: str | None) -> bool:
    """Tell whether a value is what a table shows: equal to half a unit of the last digit that stands there."""
    if value is None or figure is None:
        return value is None and figure is None
    shown = Decimal(figure)
    digits = shown.as_tuple().exponent
    assert isinstance(digits, int)
    if digits >= 0:
        return abs(value - int(shown)) <= 1e-9 * abs(int(shown))
    return abs(Decimal(value) - shown) <= Decimal(10) ** digits / 2


@pytest.fixture(scope="module")
def figures(sound: Results, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float | None]]:
    """Return, per example, every metric of its stored record, and `TRIAL.COLUMN` of the exported trials."""
    found: dict[str, dict[str, float | None]] = {}
    tables = tmp_path_factory.mktemp("tables")
    export(sound.path, tables, "csv")
    with (tables / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for adapter in TABLES:
        run = read_run(execution(sound.path, adapter))
        found[adapter] = {name: metric.value for name, metric in run.metrics.items()}
        for row in rows:
            if row["run_id"] == run.run_id:
                for column in ("busy_seconds", "energy_joules", "co2e_g", "waste_default_seconds"):
                    found[adapter][f"{row['trial']}.{column}"] = float(row[column]) if row[column] else None
    return found


@pytest.mark.parametrize(("adapter", "line"), LINES)
def test_a_line_of_a_table_is_met(figures: dict[str, dict[str, float | None]], adapter: str, line: str) -> None:
    for name, figure in TABLES[adapter][line].items():
        assert is_shown(figures[adapter][name], figure), (name, figures[adapter][name], figure)


def test_the_goal_that_is_missing_is_the_reason(sound: Results) -> None:
    metrics = read_run(execution(sound.path, "optuna")).metrics
    reasons = {metrics[name].reason_if_null for name in TABLE_B["post_goal"]}
    assert reasons == {"no goal"}


def test_the_folder_of_both_passes_the_command(sound: Results) -> None:
    command = [sys.executable, "-m", "tuneoff", "verify", str(sound.path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("VERIFIED: 2 runs, 6 trials, ")


@pytest.mark.parametrize(
    ("value", "figure", "is_met"),
    [
        (7.7777777e-4, "7.778e-4", True),
        (7.7774e-4, "7.778e-4", False),
        (176000.0, "176000", True),
        (176000.1, "176000", False),
        (14.8936, "14.89", True),
        (14.8, "14.89", False),
        (0.0, "0", True),
        (1e-12, "0", False),
        (None, None, True),
        (0.0, None, False),
        (None, "0", False),
    ],
)
def test_a_figure_is_held_to_its_digits(value: float | None, figure: str | None, is_met: bool) -> None:
    assert is_shown(value, figure) is is_met


def test_a_changed_sample_breaks_lines(tmp_path: Path) -> None:
    """The negative control: the figures come from the files."""
    results = write_examples(tmp_path / "results")
    folder = execution(results.path, "serial")
    edit(folder / "power.jsonl", lambda text: text.replace('"node":30.0', '"node":28.0'))
    derive_again(folder)
    metrics = read_run(folder).metrics
    assert not is_shown(metrics["energy.job"].value, TABLE_A["job energy; per completed trial"]["energy.job"])
