"""Which method attributes a run's energy, on accelerators too, its kind and coverage, and what it says where it cannot know."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
import pytest

from builders.energy_runs import (
    IDLE_WATTS,
    Simulated,
    Simulation,
    account_of,
    figures,
    left_over,
    metered,
    one_trial,
    sampled,
    with_header,
)
from builders.event_logs import Log, ns
from builders.specs import make_spec
from tuneoff.experiment.spec import Workers
from tuneoff.measure.attribution.account import energy_account
from tuneoff.measure.attribution.pieces import joules, seconds
from tuneoff.measure.energy import residual_flags
from tuneoff.measure.presence import presence_of
from tuneoff.measure.slots import slot_uses
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import EnergySeries

LOADED = "the idle power was read while 72 % of the processors' time was in use"
ENERGY = ("energy.node", "energy.trial", "energy.job", "energy.idle", "energy.idle_share", "energy.step.trial")
BOTH = {"package-0": IDLE_WATTS, "package-1": IDLE_WATTS}
COUNTER = sampled().power["package-0"]


def between(start: float, end: float) -> EnergySeries:
    """Return the counter as a meter saw it that was there for a part of the run."""
    times = sorted({ns(start), ns(end), *(t for t in COUNTER.times if ns(start) < t < ns(end))})
    return EnergySeries(times, [COUNTER.at(t) for t in times])


def test_what_rests_on_an_idle_power_that_is_known_to_be_wrong_is_an_estimate_and_says_why() -> None:
    values, honest = figures(with_header(sampled(), idle_problem=LOADED)), figures(sampled())
    for name in ("energy.trial", "energy.job", "energy.idle", "energy.step.trial", "energy.idle_share"):
        assert honest[name].kind == "derived"
        assert (values[name].kind, values[name].value) == ("estimated", honest[name].value), name
        assert (LOADED in values[name].source, LOADED in honest[name].source) == (True, False)
    assert values["carbon.job"].kind == values["waste.default.energy"].kind == "estimated"
    assert (values["energy.node"].kind, values["energy.cpu_seconds"].kind) == ("measured", "derived"), "they do not rest on it"


@pytest.mark.parametrize(("last", "kinds"), [(19.2, ("measured", "derived")), (18.5, ("estimated", "estimated"))])
def test_samples_of_less_than_95_percent_of_the_run_give_estimates(last: float, kinds: tuple[str, str]) -> None:
    values = figures(metered(between(-1, last)))
    assert (values["energy.node"].kind, values["energy.trial"].kind) == kinds
    assert values["energy.job"].coverage == pytest.approx(last / 20)
    assert ("samples cover 92% of the run" in values["energy.job"].source) is (last < 19)


def test_parts_that_used_more_cpu_time_than_the_host_are_a_negative_residual() -> None:
    samples = sampled()
    half = tuple(msgspec.structs.replace(sample, busy_ns=sample.busy_ns // 2) for sample in samples.usage)
    honest, double = account_of(samples), account_of(replace(samples, usage=half))
    assert residual_flags(honest) == ()
    assert left_over(honest)[1] == pytest.approx(0, abs=1)
    (flag,) = residual_flags(double)
    assert flag.name == "energy_residual"
    assert "% more than the node's" in flag.text


@pytest.mark.parametrize(
    ("samples", "reason"),
    [
        (metered(between(-1, 9)), "package-0 was sampled only up to 9.0 s of the run's 20.0 s"),
        (metered(between(16, 21)), "package-0 was sampled only from 16.0 s of the run on"),
        (sampled().shifted(ns(1000)), "no power sample lies in the run"),
        # a domain that gave no sample is not left out of the host's energy, and counters that stand still are no 0
        (with_header(sampled(), domains=tuple(BOTH), idle_watts=BOTH), "the meter gave no sample of package-1 in this run"),
        (
            metered(EnergySeries(COUNTER.times, [0.0] * len(COUNTER.times))),
            "the meter does not count: package-0 stood still over the run",
        ),
        (None, "no power was sampled in this run"),
    ],
)
def test_a_meter_that_did_not_see_all_of_a_run_tells_no_energy(samples: Samples | None, reason: str) -> None:
    values = figures(samples)
    for name in ENERGY:
        assert (values[name].value, values[name].reason_if_null) == (None, reason), name
    assert values["waste.default.energy"].value is None


def test_a_host_that_draws_less_than_its_baseline_has_no_dynamic_energy() -> None:
    times = COUNTER.times
    account = account_of(metered(EnergySeries(times, [IDLE_WATTS / 2 * (t - times[0]) / 1e9 for t in times])))
    assert joules(account.attempts["t00", 0]) == pytest.approx(10 * IDLE_WATTS / 2 / 4)
    assert joules(account.parts["services"]) == 0
    assert left_over(account)[1] == pytest.approx(0)


def test_two_trials_that_overlap_on_a_slot_share_its_idle_power() -> None:
    log = Log()
    log.step("deploy", 0, 1)
    for name, start, end in (("a", 2, 6), ("b", 4, 8)):
        log.submit(name, 1)
        process = log.process("trial", start)
        process.start(name, start, slot=0, process_cpu=0)
        process.end(name, end, "failed", 0, cpu=0, cause="x", charged="workload")
    log.step("undeploy", 9, 10)
    run = derive(log.pairs(), make_spec())
    busy = {key: seconds(held) for key, held in slot_uses(presence_of(run))[0].busy.items()}
    assert busy == {("a", 0): 3.0, ("b", 0): 3.0}
    account = energy_account(run, Evidence(samples=sampled(meter="model")))
    assert joules(account.attempts["a", 0]) == pytest.approx(15)


def test_an_attempt_that_nobody_read_leaves_trials_and_job_unknown_and_says_so() -> None:
    simulation = one_trial()
    simulation.log.submit("t01", 4)
    simulation.log.process("worker", 4).start("t01", 5, slot=1, process_cpu=0.5)
    simulation.log.coordinator.add(schema.TrialEnded, 9, trial="t01", state="failed", epochs=0, by="coordinator")
    samples = sampled(simulation)
    rare = tuple(sample for sample in samples.usage if not ns(-1) < sample.t < ns(30))
    values = figures(replace(samples, usage=rare), simulation)
    assert "no sample saw its process" in (values["energy.trial"].reason_if_null or "")
    assert values["energy.job"].value is values["waste.default.energy"].value is None


def test_without_use_samples_the_model_knows_trials_and_slots_alone() -> None:
    values = figures(replace(sampled(meter="model"), usage=()))
    assert values["energy.trial"].value == pytest.approx((7.5 * 20 + 10 * 5) / 3.6e6)
    assert values["energy.trial"].kind == "estimated"
    assert values["energy.idle"].value is not None
    for name in ("energy.job", "energy.idle_share"):
        assert values[name].reason_if_null == "no use of processes was sampled", name


def test_the_power_at_an_end_is_a_mean_over_a_second() -> None:
    stepped = EnergySeries([ns(0), ns(9), ns(9.9), ns(10)], [0.0, 900.0, 900.0, 1000.0])  # the counter moves once a second
    assert stepped.reaching(ns(-2), ns(12)).energy(ns(-2), ns(12)) == pytest.approx(1400)
    assert stepped.reaching(ns(-2), ns(12)).energy(ns(2), ns(7)) == stepped.energy(ns(2), ns(7))
    for series in (stepped.reaching(ns(1), ns(10)), EnergySeries([ns(3)], [0.0])):
        assert series.reaching(ns(1), ns(9)) is series


def test_a_meter_that_is_asked_for_every_10_seconds_covers_a_run_that_it_reads_a_little_late() -> None:
    rare = EnergySeries([ns(-0.2), ns(9.9), ns(20.1)], [0.0, 1010.0, 2030.0])
    assert account_of(metered(rare, longest_gap_ns=ns(10))).reason is not None
    assert account_of(metered(rare, interval_ns=ns(10), longest_gap_ns=ns(30))).coverage == 1.0  # as the sampler writes it


IDLE, BUSY = 70.0, 300.0  # W of the device
PID, OTHER = 101, 4242  # of the trial's process, which starts at 3 s, trains from 5 s to 15 s and ends at 16 s; of another one
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
    energies = itertools.accumulate((BUSY if ns(5) < t <= ns(15) else IDLE for t in times[1:]), initial=0.0)
    watts_idle = {**samples.header.idle_watts, **({"gpu-0": IDLE} if idle else {})}
    power = {**samples.power, "gpu-0": EnergySeries(times, list(energies))}
    beside = with_header(samples, idle_watts=watts_idle, domains=(*samples.header.domains, "gpu-0"))
    return replace(beside, usage=tuple(usage), power=power)


@pytest.mark.parametrize(("meter", "kind"), [("model", "estimated"), ("counter", "derived")])
def test_a_trial_has_the_dynamic_energy_of_its_process_and_its_slots_idle_power(meter: str, kind: str) -> None:
    simulation = on_gpu()
    account, plain = account_of(samples_of(simulation, {PID: 0.8}, meter=meter), simulation), account_of(sampled(meter=meter))
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU + 10 * BUSY)
    assert (account.node is None) is (meter == "model")
    if meter == "counter":
        assert left_over(account)[1] == pytest.approx(0, abs=1e-6)
    assert account.kind == kind
    assert "accelerators by device time" in account.source
    more = {name: joules(account.parts[name]) - joules(plain.parts[name]) for name in ("overhead", "idle", "outside")}
    assert more == pytest.approx({"overhead": 3 * IDLE, "idle": (3 - 2 + 19 - 16) * IDLE, "outside": (2 + 1) * IDLE})


def test_the_share_of_a_process_that_began_no_attempt_is_overhead() -> None:
    simulation = on_gpu()
    dead = Simulated(simulation.log.process("trial", 4), [(4.0, 0.0)])
    dead.go(12, 0.0)
    dead.writer.exit(dead.at, by=simulation.log.coordinator)
    simulation.processes.append(dead)
    account = account_of(samples_of(simulation, {PID: 0.6, dead.writer.process.pid: 0.2}), simulation)
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU + 10 * (IDLE + 0.75 * (BUSY - IDLE)))
    plain = account_of(samples_of(simulation, {PID: 0.6}), simulation)
    more = joules(account.parts["overhead"]) - joules(plain.parts["overhead"])
    assert more == pytest.approx(10 * 0.25 * (BUSY - IDLE))


@pytest.mark.parametrize(
    ("users", "idle", "reason"),
    [
        ({}, True, "which processes used the accelerators is not known"),
        ({OTHER: 0.5}, True, "which processes used the accelerators is not known"),
        ({PID: 0.5}, False, "the idle power of the accelerators is not known"),
    ],
)
def test_a_trials_energy_is_unknown_where_its_share_of_the_device_is(users: dict[int, float], idle: bool, reason: str) -> None:
    simulation = on_gpu()
    values = figures(samples_of(simulation, users, idle=idle), simulation)
    for name in ("energy.trial", "energy.job", "energy.idle", "energy.idle_share"):
        assert (values[name].value, values[name].reason_if_null) == (None, reason), name


@pytest.mark.parametrize(("device", "share"), [(0, 1.0), (1, 0.0)])
def test_a_slots_own_device_is_its_trials_where_nobody_knows_the_processes(device: int, share: float) -> None:
    simulation = on_gpu()
    experiment = replace(simulation.spec.experiment, workers=Workers(devices=(device,)))
    simulation.spec = replace(simulation.spec, experiment=experiment)
    samples = samples_of(simulation, {OTHER: 0.5}, meter="counter")
    account = account_of(samples, simulation)
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU + share * 10 * BUSY)
    assert account.kind == "estimated"
    assert "accelerators evenly over their busy slots" in account.source
    memory = (("gpu-0", PID, 2_000_000_000), ("gpu-0", OTHER, 9_000_000_000))
    usage = tuple(msgspec.structs.replace(sample, gpu_memory=memory) for sample in samples.usage)
    peak = figures(replace(samples, usage=usage), simulation)["memory.device_peak[0]"]
    assert peak.value == (2000 if share else None)


@pytest.mark.parametrize(("idle", "others"), [(True, 10 * (IDLE + BUSY)), (False, 0)])
def test_a_device_that_no_trial_uses_is_not_the_jobs_and_left_out_where_it_cannot_be_split(idle: bool, others: float) -> None:
    simulation = on_gpu("cpu")
    account = account_of(samples_of(simulation, {OTHER: 0.6}, idle=idle), simulation)
    assert joules(account.attempts["t00", 0]) == pytest.approx(OF_CPU)
    assert joules(account.parts["others"]) == pytest.approx(joules(account_of(sampled(meter="model")).parts["others"]) + others)
    counted = account_of(samples_of(simulation, {OTHER: 0.6}, idle=idle, meter="counter"), simulation)
    assert (counted.node == account_of(sampled()).node) is not idle
    assert left_over(counted)[1] == pytest.approx(0, abs=1e-6)
