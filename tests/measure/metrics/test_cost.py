"""Cost: rent of what was reserved, or the tariff of what was used; what is not known is never 0."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.event_logs import ns, run_a, run_b
from tuneoff.capabilities import Capabilities
from tuneoff.experiment.accounting.declared import Accounting, Prices, of_run
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.attribution.slots import EnergyPiece
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
    expected: dict[str, float | None] = {
        "cost.slots": 0.009778,
        "cost.step.deploy": 2 * 10 * 0.10 / 3600,
        "cost.step.trial": 2 * 150 * 0.10 / 3600,
        "cost.energy": None,
        "cost.head_node": None,
        "cost.database": None,
    }
    for name, value in expected.items():
        assert found[name].value == (None if value is None else pytest.approx(value, rel=5e-4)), name
    assert {found[name].kind for name in ("cost.job", "cost.step.test", "waste.default.cost")} == {"declared"}
    assert found["cost.job"].unit == "USD"
    assert found["waste.post_goal.cost"].reason_if_null == "no goal"


def test_steps_are_rent_by_time_and_sum_to_the_job_where_nothing_is_rounded() -> None:
    found = metrics(run_a(), A)
    steps = [value.value for name, value in found.items() if name.startswith("cost.step.")]
    assert len(steps) == 7
    assert sum(value for value in steps if value is not None) == pytest.approx(found["cost.job"].value)
    rounded = metrics(run_a(), msgspec.structs.replace(A, billing_granularity_seconds=3600))
    assert rounded["cost.job"].value == pytest.approx(0.20)
    assert rounded["cost.step.trial"].value == found["cost.step.trial"].value


@pytest.mark.parametrize(
    ("seconds", "granularity", "minimum", "billed"),
    [
        (176, 0, 0, 176),
        (176.2, 1, 0, 177),
        (176, 1, 60, 176),
        (20, 1, 60, 60),
        (61, 60, 60, 120),
        (176, 50, 0, 200),
        (0, 1, 0, 0),
    ],
)
def test_billed_time_is_rounded_up_and_has_a_minimum(seconds: float, granularity: float, minimum: float, billed: float) -> None:
    prices = msgspec.structs.replace(A, billing_granularity_seconds=granularity, billing_minimum_seconds=minimum)
    assert billed_ns(ns(seconds), prices) == ns(billed)


@given(seconds=st.floats(0, 1e6), granularity=st.floats(0, 86_400), minimum=st.floats(0, 86_400), longer=st.floats(0, 1e5))
def test_nobody_pays_for_less_than_was_used_and_longer_is_never_cheaper(
    seconds: float, granularity: float, minimum: float, longer: float
) -> None:
    prices = msgspec.structs.replace(A, billing_granularity_seconds=granularity, billing_minimum_seconds=minimum)
    billed = billed_ns(ns(seconds), prices)
    assert billed >= ns(seconds)
    assert billed <= billed_ns(ns(seconds) + ns(longer), prices)


def test_memory_that_is_not_given_is_assumed_and_said_so_else_not_known() -> None:
    run = with_memory(run_b(), None)
    assumed = metrics(run, msgspec.structs.replace(B, assumed_gb_per_vcpu=2.0))
    assert assumed["cost.job"].value == metrics(run_b(), B)["cost.job"].value
    assert assumed["cost.job"].source.endswith("memory assumed: 2 GB per vCPU")
    unknown = metrics(run, B)
    for name in ("cost.job", "cost.slots", "cost.step.trial", "cost.per_completed_trial", "waste.default.cost"):
        assert "give `workers.memory_mb`, or `assumed_gb_per_vcpu` in the price file" in str(unknown[name].reason_if_null)


def test_a_price_that_the_file_lacks_makes_what_needs_it_null() -> None:
    prices = msgspec.structs.replace(A, usd_per_vcpu_hour=None)
    found = metrics(run_a(), prices)
    reason = "the price file (a) has no `usd_per_vcpu_hour`, but a slot has vCPU; add it there"
    names = ("cost.job", "cost.slots", "cost.step.test", "cost.per_completed_trial", "waste.default.cost")
    assert {found[name].reason_if_null for name in names} == {reason}
    thrifty = dataclasses.replace(run_a(), trials=tuple(trial for trial in run_a().trials if trial.state == "completed"))
    assert metrics(thrifty, A)["waste.default.cost"].value == 0, "nothing was wasted: free at a known price, else unknown"
    assert metrics(thrifty, prices)["waste.default.cost"].reason_if_null == reason
    no_memory = metrics(run_a(), msgspec.structs.replace(A, usd_per_gb_hour=None))
    assert "has no `usd_per_gb_hour`, but a slot has memory" in str(no_memory["cost.job"].reason_if_null)


def test_memory_that_is_free_need_not_be_known() -> None:
    free = msgspec.structs.replace(A, assumed_gb_per_vcpu=None)
    found = metrics(with_memory(run_a(), None), free)
    assert found["cost.job"].value == pytest.approx(0.009778, rel=1e-4)
    assert "assumed" not in found["cost.job"].source


@pytest.mark.parametrize(
    ("lacks", "is_needed", "reason"),
    [
        ("usd_per_vcpu_hour", False, "has no `usd_per_vcpu_hour`, but a slot has vCPU"),
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
    assert (then["cost.job"].reason_if_null or "") == said


def test_an_accelerator_is_paid_on_the_slots_where_a_trial_trained_on_one() -> None:
    prices = msgspec.structs.replace(A, usd_per_accelerator_hour=1.0)
    one = with_devices(run_a(), {"2": "cuda:NVIDIA A100", "1": "cpu", "3": "cpu"})
    assert metrics(one, prices)["cost.slots"].value == pytest.approx((2 * 0.10 + 1.0) * 176 / 3600)
    assert metrics(one, prices)["waste.default.cost"].value == pytest.approx(0.10 * 50 / 3600), "trial 3 ran on the other slot"
    wasting = with_devices(run_a(), {"1": "cpu", "2": "cpu", "3": "cuda:NVIDIA A100"})
    assert metrics(wasting, prices)["waste.default.cost"].value == pytest.approx(1.10 * 50 / 3600)
    both = with_devices(run_a(), {"1": "cuda:x", "2": "cuda:x", "3": "cuda:x"})
    assert metrics(both, prices)["cost.slots"].value == pytest.approx(2 * 1.10 * 176 / 3600)
    cpu = with_devices(run_a(), {"1": "cpu", "2": "cpu", "3": "cpu"})
    assert metrics(cpu, A)["cost.slots"].value == pytest.approx(0.009778, rel=1e-4)
    unknown = metrics(one, A)
    assert unknown["cost.job"].reason_if_null == (
        "the price file (a) has no `usd_per_accelerator_hour`, but trials trained on cuda:NVIDIA A100; add it there"
    )


def test_a_head_node_and_a_database_are_paid_where_the_framework_needs_them() -> None:
    prices = msgspec.structs.replace(A, head_node_usd_per_hour=0.10, database_usd_per_hour=0.016)
    run = dataclasses.replace(run_a(), versions={"framework": "Katib"})
    found = metrics(run, prices, head_node=True, database=True)
    assert found["cost.head_node"].value == pytest.approx(0.10 * 176 / 3600)
    assert found["cost.database"].value == pytest.approx(0.016 * 176 / 3600)
    assert found["cost.job"].value == pytest.approx((0.20 + 0.116) * 176 / 3600)
    assert found["cost.step.deploy"].value == pytest.approx((0.20 + 0.116) * 10 / 3600)
    assert found["waste.default.cost"].value == pytest.approx(0.001389, rel=1e-3), "waste is the slots' alone"
    lacking = metrics(run, A, head_node=True)
    reason = "the price file (a) has no `head_node_usd_per_hour`, but Katib needs one; add it there"
    assert {lacking[name].reason_if_null for name in ("cost.job", "cost.head_node", "cost.step.trial")} == {reason}
    assert lacking["cost.slots"].value is not None
    assert metrics(run_a(), prices)["cost.head_node"].reason_if_null == f"{run_a().run_spec().adapter} needs no head node"


def test_what_a_framework_needs_is_stored_with_the_run() -> None:
    accounting = Accounting(prices=A)
    needs = of_run(accounting, Capabilities(framework="x", head_node=True))
    assert (needs.head_node, needs.database, needs.prices) == (True, False, A)


def test_on_own_premises_energy_is_paid_in_place_of_rent() -> None:
    found = metrics(run_a(), OWN)
    assert found["cost.job"].value == pytest.approx(8960 / 3.6e6 * 0.3)
    assert found["cost.job"] == found["cost.energy"]
    assert found["cost.job"].kind == "declared"
    assert found["cost.step.deploy"].value == pytest.approx(100 / 3.6e6 * 0.3)
    assert found["cost.slots"].reason_if_null == "on own premises the energy is paid, in place of rent"
    assert found["waste.default.cost"].reason_if_null == "on own premises a slot has no price; see the wasted energy"
    modelled = metrics(run_a(), OWN, dataclasses.replace(ENERGY, kind="estimated"))
    assert modelled["cost.job"].kind == "estimated"
    for account in (EnergyAccount(reason="no power"), dataclasses.replace(ENERGY, job_reason="no power")):
        unknown = metrics(run_a(), OWN, account)
        assert unknown["cost.job"].reason_if_null == unknown["cost.step.trial"].reason_if_null == "no power"


def test_rent_needs_no_energy() -> None:
    assert metrics(run_a(), A, EnergyAccount(reason="no power"))["cost.job"].value == pytest.approx(0.009778, rel=1e-4)


def test_a_run_without_a_completed_trial_enters_no_cost_ranking() -> None:
    run = run_a()
    run = dataclasses.replace(run, trials=tuple(dataclasses.replace(trial, state="failed", cause="x") for trial in run.trials))
    found = metrics(run, A)
    assert found["cost.per_completed_trial"].reason_if_null == "no trial completed, so the run enters no cost ranking"
    assert found["cost.job"].value == pytest.approx(0.009778, rel=1e-4)


def test_a_run_that_was_never_given_back_has_no_cost() -> None:
    run = run_a()
    found = metrics(dataclasses.replace(run, steps=tuple(step for step in run.steps if step.step != "undeploy")), A)
    assert found["cost.job"].reason_if_null == "un-deploy did not end"
    assert found["cost.step.undeploy"].reason_if_null == "un-deploy did not end"
    assert found["cost.step.deploy"].value is not None


def test_without_prices_everything_is_null_with_its_reason() -> None:
    found = metrics(run_a(), None)
    assert set(found) == set(metrics(run_a(), A))
    assert {value.reason_if_null for value in found.values()} == {"none were asked for"}


def test_other_prices_give_another_cost_of_the_same_record() -> None:
    run = run_a()
    dear = msgspec.structs.replace(A, usd_per_vcpu_hour=1.0)
    before = metrics(run, A)
    assert metrics(run, dear)["cost.job"].value == pytest.approx(10 * (before["cost.job"].value or 0))
    assert metrics(run, A) == before
