"""Energy of accelerators: who used the device, who reserved it, and what is said where that is not known."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
import pytest

from builders.energy_runs import Simulation, account_of, figures, left_over, one_trial, sampled, with_header
from builders.event_logs import ns
from tuneoff.measure.attribution.slots import joules
from tuneoff.measure.energy import residual
from tuneoff.record.events import schema
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import EnergySeries

IDLE, BUSY = 70.0, 300.0  # W of the device
PID = 101  # of the trial's process; it starts at 3 s, trains from 5 s to 15 s and ends at 16 s
OF_CPU = 7.5 * 20 + 10 * 5


def on_gpu(device: str = "cuda") -> Simulation:
    simulation = one_trial()
    events = simulation.log.writers[1].events
    index = next(position for position, event in enumerate(events) if isinstance(event, schema.TrialStarted))
    loaded = schema.TrialLoaded(seq=index + 1, t=events[index].t + 1, trial="t00", device=device)
    events.insert(index + 1, loaded)
    return simulation


def samples_of(simulation: Simulation, users: dict[int, float], *, idle: bool = True, meter: str = "model") -> Samples:
    """Return samples in which the device is busy from 5 s to 15 s, by these processes."""
    samples = sampled(simulation, meter)
    usage = [
        msgspec.structs.replace(sample, gpu=tuple(("gpu-0", pid, share) for pid, share in users.items()))
        if ns(5) < sample.t <= ns(15)
        else sample
        for sample in samples.usage
    ]
    times = [sample.t for sample in usage]
    watts = [BUSY if ns(5) < t <= ns(15) else IDLE for t in times[1:]]
    energies = itertools.accumulate((power for power in watts), initial=0.0)
    watts_idle = {**samples.header.idle_watts, **({"gpu-0": IDLE} if idle else {})}
    power = {**samples.power, "gpu-0": EnergySeries(times, list(energies))}
    beside = with_header(samples, idle_watts=watts_idle, domains=(*samples.header.domains, "gpu-0"))
    return replace(beside, usage=tuple(usage), power=power)


@pytest.mark.parametrize("meter", ["model", "counter"])
def test_a_trial_has_the_dynamic_energy_of_its_process_and_its_slots_idle_power(meter: str) -> None:
    simulation = on_gpu()
    account = account_of(samples_of(simulation, {PID: 0.8}, meter=meter), simulation)
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU + 10 * BUSY)
    assert left_over(account)[1] == pytest.approx(0, abs=1e-6)
    assert (residual(account) is None) == (meter == "model")
    assert account.kind == ("estimated" if meter == "model" else "derived")
    assert "accelerators by device time" in account.source
    plain = account_of(sampled(meter=meter))
    more = {name: joules(account.parts[name]) - joules(plain.parts[name]) for name in ("overhead", "idle", "outside")}
    assert more == pytest.approx({"overhead": 3 * IDLE, "idle": (3 - 2 + 19 - 16) * IDLE, "outside": (2 + 1) * IDLE})


def test_another_programs_share_of_the_device_is_other() -> None:
    simulation = on_gpu()
    account = account_of(samples_of(simulation, {PID: 0.3, 4242: 0.6}), simulation)
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU + 10 * IDLE + 10 * (BUSY - IDLE) / 3)
    assert left_over(account)[1] == pytest.approx(0, abs=1e-6)


def test_a_device_that_no_trial_uses_is_unreserved() -> None:
    simulation = on_gpu("cpu")
    account = account_of(samples_of(simulation, {4242: 0.6}), simulation)
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU)
    assert joules(account.parts["unreserved"]) == pytest.approx(20 * IDLE + 2 * 5 * 20)


@pytest.mark.parametrize(
    ("users", "idle", "reason"),
    [
        ({}, True, "which processes used the accelerators is not known"),
        ({4242: 0.5}, True, "which processes used the accelerators is not known"),
        ({PID: 0.5}, False, "the idle power of the accelerators is not known"),
    ],
)
def test_a_trials_energy_is_unknown_where_its_share_of_the_device_is(users: dict[int, float], idle: bool, reason: str) -> None:
    simulation = on_gpu()
    values = figures(samples_of(simulation, users, idle=idle), simulation)
    for name in ("energy.trial", "energy.job", "energy.overhead", "energy.residual"):
        assert (values[name].value, values[name].reason_if_null) == (None, reason), name
    assert values["energy.node"].value is not None


def test_accelerators_alone_are_not_the_host() -> None:
    simulation = on_gpu()
    bare = with_header(samples_of(simulation, {PID: 0.5}), coefficients=None)
    assert account_of(bare, simulation).reason == "only accelerators are metered here, not the host"


def test_a_device_that_no_trial_uses_and_that_cannot_be_split_is_left_out() -> None:
    simulation = on_gpu("cpu")
    account = account_of(samples_of(simulation, {}, idle=False), simulation)
    assert account.node == account_of(sampled(meter="model")).node
    assert left_over(account)[1] == pytest.approx(0, abs=1e-6)
