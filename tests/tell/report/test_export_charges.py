"""What each trial and each step used, in the exported tables of the two worked examples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from builders.worked_examples import write_example
from tuneoff.experiment.accounting.declared import Accounting, Intensity, Prices, write_accounting
from tuneoff.measure.derived import derive_folder
from tuneoff.measure.spans import PARTS
from tuneoff.record.store import write_run
from tuneoff.tell.frames.export import export
from tuneoff.tell.report.export_rows import trial_rows

Rows = list[dict[str, Any]]


def tables(
    tmp_path: Path, name: Literal["A", "B"], damage: str | None = None, accounting: Accounting | None = None
) -> dict[str, Rows]:
    """Return the tables of a results folder with one example; `damage`: a file of it that is cut; `accounting`: its own."""
    folder = tmp_path / "results" / "runs" / "r" / "e"
    spec = write_example(folder, name)
    if accounting is not None:
        write_accounting(folder, accounting)
    write_run(folder, derive_folder(folder, spec).record)
    if damage is not None:
        (folder / damage).write_text("{\n")
    return {path.stem: json.loads(path.read_text()) for path in export(tmp_path / "results", tmp_path / "out", "json")}


def on_own_premises(usd_per_kwh: float, g_per_kwh: float) -> Accounting:
    own = Prices(name="own", source="bill", date="2026-05", premises="own", usd_per_kwh=usd_per_kwh)
    return Accounting(prices=own, intensity=Intensity(kind="constant", values=(g_per_kwh,)))


def test_the_trials_of_example_a_have_their_energy_carbon_and_cost(tmp_path: Path) -> None:
    first, second, third = tables(tmp_path, "A")["trials"]
    assert [row["busy_seconds"] for row in (first, second, third)] == [100, 60, 50]
    assert [row["energy_joules"] for row in (first, second, third)] == pytest.approx([4000, 2400, 2000])
    assert {row["energy_kind"] for row in (first, second, third)} == {"derived"}
    assert sum(row["co2e_g"] for row in (first, second, third)) == pytest.approx(0.5778, abs=5e-5)
    assert first["cost_usd"] == pytest.approx(100 * 0.10 / 3600)
    assert [row["waste_default_seconds"] for row in (first, second, third)] == [0, 0, 50]
    assert [row["waste_post_goal_seconds"] for row in (first, second, third)] == [None] * 3


def test_the_trials_of_example_b_sum_to_its_metrics(tmp_path: Path) -> None:
    found = tables(tmp_path, "B")
    metrics = {row["name"]: row["value"] for row in found["metrics"]}
    assert [row["energy_joules"] for row in found["trials"]] == pytest.approx([430, 495, 265])
    assert sum(row["energy_joules"] for row in found["trials"]) == pytest.approx(metrics["energy.trials"])
    assert {row["energy_kind"] for row in found["trials"]} == {"estimated"}
    assert [row["co2e_g"] for row in found["trials"]] == [None] * 3  # the example has no intensity
    assert sum(row["waste_default_seconds"] for row in found["trials"]) * 1e3 == pytest.approx(metrics["waste.default.time"])


@pytest.mark.parametrize("name", ["A", "B"])
def test_the_steps_sum_to_the_job(tmp_path: Path, name: Literal["A", "B"]) -> None:
    found = tables(tmp_path, name)
    metrics = {row["name"]: row["value"] for row in found["metrics"]}
    assert [row["step"] for row in found["steps"]] == list(PARTS)
    assert sum(row["milliseconds"] for row in found["steps"]) == pytest.approx(metrics["time.jct"])
    assert sum(row["energy_joules"] for row in found["steps"]) == pytest.approx(metrics["energy.job"])
    assert sum(row["cost_usd"] for row in found["steps"]) == pytest.approx(metrics["cost.job"])
    if name == "A":
        assert sum(row["co2e_g"] for row in found["steps"]) == pytest.approx(metrics["carbon.job"])


def test_declared_variables_are_rows_with_json_values(tmp_path: Path) -> None:
    rows = {row["symbol"]: row for row in tables(tmp_path, "B")["declared"]}
    assert json.loads(rows["wn"]["declared"]) == 2
    assert json.loads(rows["wn"]["found"])["greatest_overlap"] == 2
    assert rows["wn"]["agrees"] is True
    assert rows["pS"]["agrees"] is None


@pytest.mark.parametrize("damage", ["power.jsonl", "accounting.json"])
def test_a_damaged_file_leaves_the_other_columns(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    found = tables(tmp_path, "B", damage)["trials"]
    assert [row["busy_seconds"] for row in found] == pytest.approx([18, 21, 11])
    has_energy, has_cost = damage != "power.jsonl", damage != "accounting.json"
    assert [row["energy_joules"] is not None for row in found] == [has_energy] * 3
    assert [row["energy_kind"] is not None for row in found] == [has_energy] * 3
    assert [row["cost_usd"] is not None for row in found] == [has_cost] * 3
    assert [row["cost_kind"] for row in found] == ["declared" if has_cost else None] * 3
    assert damage in caplog.text


def test_what_carbon_and_cost_rest_on_is_said_per_trial_and_step(tmp_path: Path) -> None:
    found = tables(tmp_path, "A")
    for row in (*found["trials"], *found["steps"]):
        assert (row["energy_kind"], row["co2e_kind"], row["cost_kind"]) == ("derived", "declared", "declared")
    without = tables(tmp_path / "b", "B")
    assert {row["co2e_kind"] for row in (*without["trials"], *without["steps"])} == {None}


def test_on_own_premises_what_a_modelled_trial_costs_is_estimated(tmp_path: Path) -> None:
    read = tables(tmp_path, "B", accounting=on_own_premises(usd_per_kwh=0.3, g_per_kwh=300.0))
    for row in (*read["trials"], *read["steps"]):
        assert (row["co2e_kind"], row["cost_kind"]) == ("estimated", "estimated")
    assert sum(row["cost_usd"] for row in read["trials"]) == pytest.approx(1190 / 3.6e6 * 0.3)


def test_a_figure_that_overflows_is_null_and_leaves_the_others(tmp_path: Path) -> None:
    read = tables(tmp_path, "B", accounting=on_own_premises(usd_per_kwh=1e308, g_per_kwh=1e308))
    assert [row["co2e_g"] for row in read["trials"]] == [None] * 3
    assert [row["energy_joules"] for row in read["trials"]] == pytest.approx([430, 495, 265])
    metrics = {row["name"]: row for row in read["metrics"]}
    assert metrics["carbon.job"]["reason_if_null"] == "it came out as inf: what it is computed from is too large"
    assert metrics["energy.job"]["value"] == pytest.approx(1670)


def test_a_trial_has_the_cpu_time_of_all_its_attempts_or_none(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "runs" / "r" / "e"
    run = derive_folder(folder, write_example(folder, "B")).record
    assert [len(trial.attempts) for trial in run.trials] == [1, 2, 1]

    def cpu_seconds(first: int | None) -> list[float | None]:
        """Return the column where each trial's first attempt used `first` ns, and a further one 2 s."""
        trials = tuple(
            replace(
                trial,
                attempts=tuple(
                    msgspec.structs.replace(attempt, cpu_ns=2_000_000_000 if index else first)
                    for index, attempt in enumerate(trial.attempts)
                ),
            )
            for trial in run.trials
        )
        return [row["cpu_seconds"] for row in trial_rows(replace(run, trials=trials), True, {})]

    assert cpu_seconds(1_000_000_000) == [1.0, 3.0, 1.0]
    assert cpu_seconds(None) == [None, None, None]
