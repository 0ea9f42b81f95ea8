"""Properties of a run's energy on random runs of which the truth is known; each has a control that it does not hold for."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.energy_runs import JOULES_PER_CPU_SECOND, WATTS_PER_CORE, Simulation, left_over, one_trial, simulations
from builders.event_logs import ns
from tuneoff.measure.attribution.account import EnergyAccount, energy_account, job_pieces
from tuneoff.measure.attribution.slots import EnergyPiece, core_seconds, joules, slot_uses
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.energy import residual, residual_flags, trial_joules
from tuneoff.measure.presence import presence_of
from tuneoff.record.metric_value import MetricValue

METERS = st.sampled_from(["model", "counter"])
SIGNED = {"energy.residual", "energy.residual_share", "quality.optimism"}  # and qualities, which are the workload's
SETTINGS = settings(max_examples=40, deadline=None)


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-6, abs=1e-5)


def check_truth(simulation: Simulation, account: EnergyAccount) -> None:
    for key, (busy, cpu) in simulation.busy.items():
        assert joules(account.attempts[key]) == close(JOULES_PER_CPU_SECOND * cpu + WATTS_PER_CORE * busy), key


def check_whole(account: EnergyAccount) -> None:
    found = left_over(account)
    assert found[1] == close(0)
    assert residual(account) == (None if account.model is not None else (found[0], close(found[1])))
    assert residual_flags(account) == ()


def check_waste(values: Mapping[str, MetricValue]) -> None:
    trials = (values["energy.trials"].value or 0) / 3.6e6
    assert 0 <= (values["waste.default.energy"].value or 0) <= trials * (1 + 1e-6)


def check_signs(values: Mapping[str, MetricValue]) -> None:
    for name, value in values.items():
        assert value.value is not None or value.reason_if_null, name
        assert value.value is None or value.reason_if_null is None, name
        if name not in SIGNED and not name.startswith(("quality.", "test.")):
            assert value.value is None or value.value >= 0, name


@given(simulations(), METERS)
@SETTINGS
def test_each_attempt_has_the_energy_that_it_used_and_nothing_is_left_over(simulation: Simulation, meter: str) -> None:
    account = energy_account(simulation.run(), simulation.evidence(meter))
    assert account.job_reason is None
    check_truth(simulation, account)
    check_whole(account)


@given(simulations(), METERS, st.sampled_from([0.7, 2.0, 3.0]))
@SETTINGS
def test_rare_samples_lose_no_energy(simulation: Simulation, meter: str, interval: float) -> None:
    account = energy_account(simulation.run(), simulation.evidence(meter, interval))
    found = left_over(account)
    assert found[1] >= -1e-6 * found[0]  # never more than there was
    if meter == "model":
        assert found[1] == close(0)


def test_a_part_that_is_left_out_and_one_that_is_counted_twice_leave_a_residual() -> None:
    simulation = one_trial()
    account = energy_account(simulation.run(), simulation.evidence("counter"))
    check_truth(simulation, account)
    check_whole(account)
    halved = {
        key: tuple(EnergyPiece(start, end, energy / 2) for start, end, energy in pieces)
        for key, pieces in account.attempts.items()
    }
    doubled = {**account.parts, "overhead": account.parts["overhead"] * 2}
    for broken, sign in ((replace(account, attempts=halved), 1), (replace(account, parts=doubled), -1)):
        with pytest.raises(AssertionError):
            check_whole(broken)
        found = residual(broken)
        assert found is not None
        assert found[1] * sign > 0
        assert [flag.name for flag in residual_flags(broken)] == ["energy_residual"]
    with pytest.raises(AssertionError):
        check_truth(simulation, replace(account, attempts=halved))


@given(simulations(), METERS)
@SETTINGS
def test_no_more_energy_is_wasted_than_trials_used(simulation: Simulation, meter: str) -> None:
    check_waste(with_metrics(simulation.run(), simulation.evidence(meter)).metrics)


def test_waste_out_of_its_bounds_is_found() -> None:
    simulation = one_trial()
    values = with_metrics(simulation.run(), simulation.evidence()).metrics
    check_waste(values)
    for value in (1.0, -1.0):
        with pytest.raises(AssertionError):
            check_waste({**values, "waste.default.energy": replace(values["waste.default.energy"], value=value)})


@given(simulations(), METERS)
@SETTINGS
def test_nothing_but_the_residual_is_negative_and_nothing_missing_has_a_value(simulation: Simulation, meter: str) -> None:
    check_signs(with_metrics(simulation.run(), simulation.evidence(meter)).metrics)
    check_signs(with_metrics(simulation.run()).metrics)


@pytest.mark.parametrize(("name", "value"), [("energy.idle", -1.0), ("time.jct", -0.5)])
def test_a_negative_figure_is_found(name: str, value: float) -> None:
    simulation = one_trial()
    values = with_metrics(simulation.run(), simulation.evidence("counter")).metrics
    check_signs(values)
    with pytest.raises(AssertionError):
        check_signs({**values, name: replace(values[name], value=value)})
    check_signs({**values, "energy.residual": replace(values["energy.residual"], value=value)})


@given(simulations(), METERS, st.randoms(use_true_random=False))
@SETTINGS
def test_the_order_of_processes_changes_no_figure(simulation: Simulation, meter: str, shuffler: random.Random) -> None:
    order = list(range(len(simulation.log.writers)))
    shuffler.shuffle(order)
    evidence = simulation.evidence(meter)
    assert with_metrics(simulation.run(order), evidence).metrics == with_metrics(simulation.run(), evidence).metrics


def test_the_order_inside_a_process_does_matter() -> None:
    simulation = one_trial()
    before = with_metrics(simulation.run(), simulation.evidence()).metrics
    events = simulation.log.writers[1].events
    events[1], events[2] = events[2], events[1]  # an epoch comes before its trial's start
    assert with_metrics(simulation.run(), simulation.evidence()).metrics != before


@given(simulations(), st.floats(0.5, 1000))
@SETTINGS
def test_twice_the_intensity_is_twice_the_carbon_and_the_same_weights(simulation: Simulation, intensity: float) -> None:
    run = simulation.run()
    once = with_metrics(run, simulation.evidence(intensity=intensity)).metrics
    twice = with_metrics(run, simulation.evidence(intensity=2 * intensity)).metrics
    for name, value in once.items():
        is_carbon = name.startswith("carbon.") or name.endswith(".carbon")
        factor = 2 if is_carbon and value.unit in ("g", "g/kWh") else 1
        if value.value is not None:
            assert twice[name].value == pytest.approx(factor * value.value), name
    assert once["carbon.trials_left_out"] == twice["carbon.trials_left_out"]
    assert once["carbon.job"].value


@given(simulations())
@SETTINGS
def test_the_slots_time_is_shared_out_without_remainder(simulation: Simulation) -> None:
    run, end = simulation.run(), ns(simulation.end)
    for slot in slot_uses(run, presence_of(run), end):
        busy = sum(core_seconds(shares) for shares in slot.busy.values())
        assert busy + sum(core_seconds(shares) for shares in slot.parts.values()) == close(simulation.end)


@given(st.integers(1, 9), st.sampled_from([0.25, 0.5, 1.0]), st.sampled_from([0.25, 1.0]), METERS)
@SETTINGS
def test_splitting_a_trial_by_a_retry_keeps_its_energy(cut: int, before: float, after: float, meter: str) -> None:
    whole, split = one_trial(rates=(before, after), cut=cut), one_trial(rates=(before, after), cut=cut, is_split=True)
    energies = []
    for simulation in (whole, split):
        run, evidence = simulation.run(), simulation.evidence(meter)
        account = energy_account(run, evidence)
        energies.append((trial_joules(run, account)["t00"], sum(piece.joules for piece in job_pieces(account))))
    assert energies[0] == close_pair(energies[1])
    assert len(split.run().trials[0].attempts) == 2
    longer = one_trial(rates=(before, after), cut=cut, length=11)
    account = energy_account(longer.run(), longer.evidence(meter))
    assert trial_joules(longer.run(), account)["t00"] > energies[0][0]  # the control: a longer trial has more


def close_pair(pair: tuple[float, float]) -> object:
    return pytest.approx(pair, rel=1e-6)
