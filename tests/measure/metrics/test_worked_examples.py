"""The two worked examples of the metrics' definition, from files on disk through the real pipeline.

The figures that stand in the definition's own tables are held to their digits in `trust/verify/test_worked_tables.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from builders.event_logs import ns, run_b
from builders.worked_examples import write_example
from tuneoff.experiment.accounting.declared import read_accounting
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.attribution.pieces import joules
from tuneoff.measure.derived import derive_folder
from tuneoff.measure.energy import trial_joules
from tuneoff.measure.incumbent import incumbents
from tuneoff.measure.spans import PARTS
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence, on_run_clock, read_samples

KWH = 3.6e6
EXPECTED_A: dict[str, float | None] = {
    "time.unassigned": 0,
    "time.jct_without_test": 170_000,
    "time.jct_without_metric_collection": 175_000,
    "slots.busy": 210,
    "slots.overhead": 0,
    "slots.utilization": 70,
    "slots.greatest_overlap": 2,
    "slots.trial_gap_median": 0,
    "trial_execution.mean": 70_000,
    "trial_execution.max": 100_000,
    "trials.used": 3,
    "trials.completed": 2,
    "trials.pruned": 1,
    "epochs.trained": 10,
    "stop_latency.max": 0,
    "stop.epochs_after_decision": 0,
    "waste.post_goal.time": None,
    "goal.seconds": None,
    "quality.validation": 0.95,
    "quality.test": 0.93,
    "quality.optimism": 0.02,
    "energy.per_trained_epoch": 1_053,
    "energy.node": 10_530,
    "energy.job_low": None,
    "energy.step.deploy": 300,
    "energy.step.setup": 60,
    "energy.step.trial": 2 * 60 * 40 + 40 * (40 + 15) + 50 * (40 + 15),
    "energy.step.result_collection": 60,
    "energy.step.test": 180,
    "energy.step.metric_collection": 30,
    "energy.step.undeploy": 150,
    "cost.per_completed_trial": 0.004889,
    "energy.job_without_test": 10_530 - 180,
    "energy.per_completed_trial_without_test": 5_175,
    "energy.cpu_seconds": 210,
    "energy.cpu_seconds_without_test": 210,
    "energy.reserved_core_seconds": 352,
    "carbon.job_without_test": 0.7611 - 180 / KWH * 400,
    "cost.job_without_test": 0.20 * 170 / 3600,
    "cost.per_completed_trial_without_test": 0.10 * 170 / 3600,
    "waste.post_goal.energy": None,
    "waste.post_goal.cost": None,
    "pruning.saved_epochs": 2,
    "pruning.saved_time": 50_000,
    "pruning.saved_energy": 2_000 / KWH,
}

EXPECTED_B: dict[str, float | None] = {
    "time.jct_without_test": 48_000,
    "trials.pruned": 1,
    "trials.failed": 0,
    "trials.retries": 1,
    "slots.greatest_overlap": 2,
    "overhead.per_trial": 14_000 / 3,  # the 12 slot-s of overhead, and 2 between a process's exit and the next start
    "overhead.vacant": 2_000 / 3,
    "overhead.process_start": 4_500 / 3,
    "overhead.dispatch": 3_500 / 3,
    "overhead.between": 0,
    "overhead.report": 2_000 / 3,
    "overhead.per_report": 200,
    "overhead.reports": 10 / 3,
    "overhead.job_start": 8_500 / 4,  # of four processes; the first of each worker is the job's
    "overhead.further_trial": 3_500 / 3 + 2 * 8_500 / 4,  # the waits in reports, 2 s of ten, are not the trial's
    "overhead.exit": 2_000 / 3,
    "stop.busy_after_decision": 3_000,
    "energy.job_low": 57.5 * 10 + 104 * 2.5,
    "energy.job_high": 57.5 * 40 + 104 * 10,
    "energy.node": None,
    "energy.cpu_seconds": 57.5,
    "energy.job_without_test": 1_670 - 40 - 40 - 60 * 4 / 52,  # slots, the test's process, the coordinator by then
    "energy.per_completed_trial_without_test": (1_590 - 60 * 4 / 52) / 2,
    "energy.cpu_seconds_without_test": 57.5 - 2 - 3 * 4 / 52,
    "carbon.job_without_test": None,
    "cost.per_completed_trial_without_test": 0.0023111 / 2 * 48 / 52,
    "energy.reserved_core_seconds": 104,
    "carbon.job": None,
    "cost.per_completed_trial": 0.0023111 / 2,
    "pruning.saved_epochs": 2,
    "pruning.saved_time": 8_000,
    "pruning.saved_energy": 200 / KWH,
}
EXPECTED = {"A": EXPECTED_A, "B": EXPECTED_B}
BOTH = pytest.mark.parametrize("name", ["A", "B"])


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunRecord]:
    def record(name: Literal["A", "B"]) -> RunRecord:
        folder: Path = tmp_path_factory.mktemp(name)
        return derive_folder(folder, write_example(folder, name)).record

    return {"A": record("A"), "B": record("B")}


def account_of(folder: Path, name: Literal["A", "B"]) -> EnergyAccount:
    run = derive_folder(folder, write_example(folder, name)).record
    samples = on_run_clock(read_samples(folder), run)
    return energy_account(run, Evidence(samples=samples, accounting=read_accounting(folder)))


@BOTH
def test_every_figure_of_the_worked_example_is_met(records: dict[str, RunRecord], name: str) -> None:
    metrics = records[name].metrics
    for metric, value in EXPECTED[name].items():
        assert metrics[metric].value == (value if value is None else pytest.approx(value, rel=2e-4, abs=1e-9)), metric


@BOTH
def test_the_steps_have_all_time_energy_carbon_and_cost_of_the_job(records: dict[str, RunRecord], name: str) -> None:
    metrics = records[name].metrics
    assert sum(metrics[f"time.{part}"].value or 0 for part in PARTS) == metrics["time.jct"].value
    for family in ("energy", "carbon", "cost") if name == "A" else ("energy", "cost"):
        steps = sum(metrics[f"{family}.step.{part}"].value or 0 for part in PARTS)
        assert steps == pytest.approx(metrics[f"{family}.job"].value)


def test_the_energy_of_each_trial_of_example_b(records: dict[str, RunRecord], tmp_path: Path) -> None:
    account = account_of(tmp_path, "B")
    assert trial_joules(records["B"], account) == pytest.approx({"1": 430, "2": 495, "3": 265})
    assert joules(account.attempts["2", 0]) == pytest.approx(15)
    late = joules(account.attempts["3", 0], (ns(40), ns(43)))
    assert (joules(account.attempts["3", 0]) - late, late) == pytest.approx((200, 65))
    of_parts = {name: joules(pieces) for name, pieces in account.parts.items() if name != "others"}
    assert of_parts == pytest.approx({"overhead": 170, "idle": 80, "outside": 130, "services": 60 + 40}), "coordinator and test"
    outside = account.parts["outside"]
    assert (joules(outside, (0, ns(5))), joules(outside, (ns(44), ns(52)))) == pytest.approx((50, 80))


def test_what_a_counter_tells_is_derived_and_the_model_is_estimated(records: dict[str, RunRecord]) -> None:
    kinds = {name: {metric: value.kind for metric, value in record.metrics.items()} for name, record in records.items()}
    for metric in ("energy.trial", "energy.job", "energy.idle_share", "energy.step.test", "waste.default.energy"):
        assert (kinds["A"][metric], kinds["B"][metric]) == ("derived", "estimated"), metric
    assert (kinds["A"]["carbon.job"], kinds["A"]["cost.job"], kinds["B"]["cost.job"]) == ("declared",) * 3
    assert (kinds["A"]["energy.node"], kinds["B"]["energy.weight_ratio_low"]) == ("measured", "declared")
    assert kinds["B"]["energy.cpu_seconds"] == "derived"
    assert {kinds[name]["pruning.saved_energy"] for name in "AB"} == {"estimated"}
    values = records["A"].metrics["energy.job"], records["B"].metrics["energy.job"]
    assert [(value.coverage, value.n_samples) for value in values] == [(1.0, 179), (1.0, 55)]


def test_a_changed_sample_changes_the_figures(tmp_path: Path) -> None:
    """The negative control: what the test above reads does come from the file."""
    spec = write_example(tmp_path, "A")
    path = tmp_path / "power.jsonl"
    path.write_text(path.read_text().replace('"node":30.0', '"node":28.0'))  # idle W: the rest goes to those who work
    metrics = derive_folder(tmp_path, spec).record.metrics
    assert metrics["energy.job"].value == pytest.approx(10_530 - 26 * 2), "nobody worked for 26 s"
    assert metrics["energy.trial"].value == pytest.approx((8_400 + 90 * 1) / 3 / KWH), "one trial was alone for 90 s"


def test_an_improvement_took_each_trial_once_however_often_it_was_tried() -> None:
    assert [(step.trials, step.epochs) for step in incumbents(run_b())] == [(2, 1), (2, 3), (2, 5), (2, 7)]
