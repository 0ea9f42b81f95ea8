"""Properties of a run's energy on random runs of which the truth is known; each has a control that it does not hold for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.energy_runs import JOULES_PER_CPU_SECOND, WATTS_PER_CORE, Simulation, left_over, one_trial, simulations
from tuneoff.measure.attribution.account import EnergyAccount, energy_account
from tuneoff.measure.attribution.pieces import EnergyPiece, joules
from tuneoff.measure.energy import residual, residual_flags

METERS = st.sampled_from(["model", "counter"])
SETTINGS = settings(max_examples=40, deadline=None)


def close(value: float) -> object:
    return pytest.approx(value, rel=1e-6, abs=1e-5)


def check_truth(simulation: Simulation, account: EnergyAccount) -> None:
    for key, (busy, cpu) in simulation.busy.items():
        assert joules(account.attempts[key]) == close(JOULES_PER_CPU_SECOND * cpu + WATTS_PER_CORE * busy), key


def check_whole(account: EnergyAccount) -> None:
    if account.model is None:
        found = left_over(account)
        assert found[1] == close(0)
        assert residual(account) == (found[0], close(found[1]))
    else:
        assert (account.node, residual(account)) == (None, None)
    assert residual_flags(account) == ()


@given(simulations(), METERS)
@SETTINGS
def test_each_attempt_has_the_energy_that_it_used_and_nothing_is_left_over(simulation: Simulation, meter: str) -> None:
    account = energy_account(simulation.run(), simulation.evidence(meter))
    assert account.job_reason is None
    check_truth(simulation, account)
    check_whole(account)


def test_a_part_that_is_left_out_and_one_that_is_counted_twice_leave_a_residual() -> None:
    simulation = one_trial()
    account = energy_account(simulation.run(), simulation.evidence("counter"))
    check_truth(simulation, account)
    check_whole(account)
    halved = {
        key: tuple(EnergyPiece(start, end, energy / 2) for start, end, energy in pieces)
        for key, pieces in account.attempts.items()
    }
    doubled = {**account.parts, "overhead": [*account.parts["overhead"], *account.parts["overhead"]]}
    for broken, sign in ((replace(account, attempts=halved), 1), (replace(account, parts=doubled), -1)):
        with pytest.raises(AssertionError):
            check_whole(broken)
        found = residual(broken)
        assert found is not None
        assert found[1] * sign > 0
        assert [flag.name for flag in residual_flags(broken)] == ["energy_residual"]
    with pytest.raises(AssertionError):
        check_truth(simulation, replace(account, attempts=halved))
