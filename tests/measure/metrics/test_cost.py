"""Cost: rent of what was reserved, or the tariff of what was used; what is not known is never 0."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from builders.event_logs import ns, run_a, run_b
from tuneoff.experiment.accounting.declared import Accounting, Prices
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.pieces import EnergyPiece
from tuneoff.measure.cost import billed_ns, cost_metrics, unpriced, waste_cost_metrics
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence

A = Prices(name="a", source="example", date="2023-11", usd_per_vcpu_hour=0.10, usd_per_gb_hour=0.0, assumed_gb_per_vcpu=1.0)
B = Prices(name="b", source="example", date="2023-11", usd_per_vcpu_hour=0.06, usd_per_gb_hour=0.01)
OWN = Prices(name="own", source="bill", date="2023-11", premises="own", usd_per_kwh=0.3)
ENERGY = EnergyAccount(
    kind="derived",
    source="node",
    attempts={("1", 0): (EnergyPiece(ns(12), ns(112), 7200.0),)},
    parts={"idle": (EnergyPiece(0, ns(176), 1760.0),)},
)


def metrics(run: RunRecord, prices: Prices | None, account: EnergyAccount = ENERGY, **needs: bool) -> dict[str, MetricValue]:
    evidence = Evidence(
        accounting=msgspec.structs.replace(Accounting(prices=prices, prices_reason="none were asked for"), **needs)
    )
    return {**cost_metrics(run, evidence, account), **waste_cost_metrics(run, evidence, account)}


def with_devices(run: RunRecord, devices: dict[str, str]) -> RunRecord:
    """Return the run with the device that each trial trained on."""
    trials = []
    for trial in run.trials:
        attempts = tuple(msgspec.structs.replace(item, device=devices.get(trial.trial)) for item in trial.attempts)
        trials.append(dataclasses.replace(trial, attempts=attempts))
    return dataclasses.replace(run, trials=tuple(trials))


def with_memory(run: RunRecord, memory_mb: float | None) -> RunRecord:
    specification: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(run.specification))
    specification["experiment"]["workers"]["memory_mb"] = memory_mb
    return dataclasses.replace(run, specification=specification)


def test_what_the_slots_of_worked_example_a_cost_by_step() -> None:
    found = metrics(run_a(), A)
    assert found["cost.step.deploy"].value == pytest.approx(2 * 10 * 0.10 / 3600)
    assert found["cost.step.trial"].value == pytest.approx(2 * 150 * 0.10 / 3600)
    assert {found[name].kind for name in ("cost.job", "cost.step.test", "waste.default.cost")} == {"declared"}
    assert found["waste.post_goal.cost"].reason_if_null == "no goal"


@pytest.mark.parametrize(
    ("seconds", "granularity", "minimum", "billed"),
    [
        (176.2, 0, 0, 176.2),
        (176.2, 1, 60, 177),
        (20, 1, 60, 60),
        (61, 60, 60, 120),
    ],
)
def test_billed_time_is_rounded_up_and_has_a_minimum(seconds: float, granularity: float, minimum: float, billed: float) -> None:
    prices = msgspec.structs.replace(A, billing_granularity_seconds=granularity, billing_minimum_seconds=minimum)
    assert billed_ns(ns(seconds), prices) == ns(billed)


def test_memory_that_is_not_given_is_assumed_and_said_so_else_not_known() -> None:
    run = with_memory(run_b(), None)
    assumed = metrics(run, msgspec.structs.replace(B, assumed_gb_per_vcpu=2.0))
    assert assumed["cost.job"].value == metrics(run_b(), B)["cost.job"].value
    assert assumed["cost.job"].source.endswith("memory assumed: 2 GB per vCPU")
    unknown = metrics(run, B)
    for name in ("cost.job", "cost.step.trial", "cost.per_completed_trial", "waste.default.cost"):
        assert "give `workers.memory_mb`, or `assumed_gb_per_vcpu` in the price file" in str(unknown[name].reason_if_null)


def test_nothing_wasted_is_free_at_a_known_price_and_unknown_at_none() -> None:
    thrifty = dataclasses.replace(run_a(), trials=tuple(trial for trial in run_a().trials if trial.state == "completed"))
    assert metrics(thrifty, A)["waste.default.cost"].value == 0
    unknown = metrics(thrifty, msgspec.structs.replace(A, usd_per_vcpu_hour=None))["waste.default.cost"]
    assert unknown.reason_if_null == "the price file (a) has no `usd_per_vcpu_hour`, but a slot has vCPU; add it there"


@pytest.mark.parametrize(
    ("lacks", "is_needed", "reason"),
    [
        ("usd_per_vcpu_hour", False, "has no `usd_per_vcpu_hour`, but a slot has vCPU"),
        ("usd_per_gb_hour", False, "has no `usd_per_gb_hour`, but a slot has memory"),
        ("head_node_usd_per_hour", True, "has no `head_node_usd_per_hour`, but Katib needs one"),
        ("database_usd_per_hour", True, "has no `database_usd_per_hour`, but Katib needs one"),
        ("head_node_usd_per_hour", False, ""),
    ],
)
def test_what_a_plan_says_will_lack_a_cost_is_what_then_lacks_it(lacks: str, is_needed: bool, reason: str) -> None:
    whole = msgspec.structs.replace(A, head_node_usd_per_hour=0.1, database_usd_per_hour=0.1)
    prices = msgspec.structs.replace(whole, **{lacks: None})
    said = unpriced(
        run_a().run_spec().experiment.workers, Accounting(prices=prices, head_node=is_needed, database=is_needed), "Katib"
    )
    assert reason in said
    assert (said == "") is (reason == "")
    then = metrics(dataclasses.replace(run_a(), versions={"framework": "Katib"}), prices, head_node=is_needed, database=is_needed)
    for name in ("cost.job", "cost.step.trial", "cost.per_completed_trial"):
        assert (then[name].reason_if_null or "") == said, name


def test_an_accelerator_is_paid_on_the_slots_where_a_trial_trained_on_one() -> None:
    prices = msgspec.structs.replace(A, usd_per_accelerator_hour=1.0)
    one = with_devices(run_a(), {"2": "cuda:NVIDIA A100", "1": "cpu", "3": "cpu"})
    assert metrics(one, prices)["cost.job"].value == pytest.approx((2 * 0.10 + 1.0) * 176 / 3600)
    assert metrics(one, prices)["waste.default.cost"].value == pytest.approx(0.10 * 50 / 3600), "trial 3 ran on the other slot"
    wasting = with_devices(run_a(), {"1": "cpu", "2": "cpu", "3": "cuda:NVIDIA A100"})
    assert metrics(wasting, prices)["waste.default.cost"].value == pytest.approx(1.10 * 50 / 3600)
    both = with_devices(run_a(), {"1": "cuda:x", "2": "cuda:x", "3": "cuda:x"})
    assert metrics(both, prices)["cost.job"].value == pytest.approx(2 * 1.10 * 176 / 3600)
    unknown = metrics(one, A)
    assert unknown["cost.job"].reason_if_null == (
        "the price file (a) has no `usd_per_accelerator_hour`, but trials trained on cuda:NVIDIA A100; add it there"
    )


def test_a_head_node_and_a_database_are_paid_where_the_framework_needs_them() -> None:
    prices = msgspec.structs.replace(A, head_node_usd_per_hour=0.10, database_usd_per_hour=0.016)
    run = dataclasses.replace(run_a(), versions={"framework": "Katib"})
    found = metrics(run, prices, head_node=True, database=True)
    assert found["cost.job"].value == pytest.approx((0.20 + 0.116) * 176 / 3600)
    assert found["cost.step.deploy"].value == pytest.approx((0.20 + 0.116) * 10 / 3600)
    assert found["waste.default.cost"].value == pytest.approx(0.001389, rel=1e-3), "waste is the slots' alone"
    assert metrics(run_a(), prices)["cost.job"].value == metrics(run_a(), A)["cost.job"].value, "it needs neither"


def test_on_own_premises_energy_is_paid_in_place_of_rent() -> None:
    found = metrics(run_a(), OWN)
    assert found["cost.job"].value == pytest.approx(8960 / 3.6e6 * 0.3)
    assert found["cost.job"].kind == "declared"
    assert found["cost.step.deploy"].value == pytest.approx(100 / 3.6e6 * 0.3)
    assert found["waste.default.cost"].reason_if_null == "on own premises a slot has no price; see the wasted energy"
    modelled = metrics(run_a(), OWN, dataclasses.replace(ENERGY, kind="estimated"))
    assert modelled["cost.job"].kind == "estimated"
    for account in (EnergyAccount(reason="no power"), dataclasses.replace(ENERGY, job_reason="no power")):
        unknown = metrics(run_a(), OWN, account)
        assert unknown["cost.job"].reason_if_null == unknown["cost.step.trial"].reason_if_null == "no power"
