"""Which method attributes a run's energy, what its kind and coverage are, and what it says where it cannot know."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings

from builders.energy_runs import (
    IDLE_WATTS,
    Simulation,
    account_of,
    figures,
    metered,
    one_trial,
    sampled,
    simulations,
    with_header,
)
from builders.event_logs import Log, ns
from builders.specs import make_spec
from builders.worked_examples import header
from tuneoff.measure.attribution.account import energy_account
from tuneoff.measure.attribution.methods import _CpuCosts
from tuneoff.measure.attribution.slots import CpuPiece, EnergyPiece, joules, slot_uses
from tuneoff.measure.energy import NO_NODE_METER, residual_flags
from tuneoff.measure.presence import presence_of
from tuneoff.record.derive import derive
from tuneoff.record.events import schema
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import EnergySeries, Header, UsageSample


def test_a_run_without_samples_says_so_and_still_knows_its_trials_cpu_time() -> None:
    values = figures(None)
    for name, value in values.items():
        if name.startswith("energy.") and "seconds" not in name:
            assert (value.value, value.reason_if_null) == (None, "no power was sampled in this run"), name
    assert values["energy.trial_cpu_seconds"].value == pytest.approx(7.5)
    assert values["energy.trial_core_seconds"].value == pytest.approx(10)
    assert values["energy.cpu_seconds"].value is None


def test_no_meter_says_why_none_was_found() -> None:
    head = header("none", "estimated", reason="no counter, no model")
    values = figures(Samples(header=head))
    assert values["energy.job"].reason_if_null == "no power meter could be read: no counter, no model"


def test_counters_are_measured_as_a_node_and_derived_as_trials() -> None:
    values = figures(sampled())
    assert values["energy.node"].kind == "measured"
    assert {values[name].kind for name in ("energy.trial", "energy.job", "energy.idle", "energy.residual")} == {"derived"}
    assert "attributed" in values["energy.trial"].source
    assert values["energy.trial"].coverage == 1.0


BUSY = "the idle power was read while 72 % of the processors' time was in use"


def test_what_rests_on_an_idle_power_that_is_known_to_be_wrong_is_an_estimate_and_says_why() -> None:
    values = figures(with_header(sampled(), idle_problem=BUSY))
    honest = figures(sampled())
    split = [name for name, value in honest.items() if value.kind == "derived" and name.startswith("energy.")]
    for name in ("energy.trial", "energy.job", "energy.window.idle", "energy.residual", "energy.step.trial", "energy.idle_share"):
        assert name in split
        assert (values[name].kind, values[name].value) == ("estimated", honest[name].value), name
        assert BUSY in values[name].source
        assert BUSY not in honest[name].source
    assert values["carbon.job"].kind == values["waste.default.energy"].kind == "estimated"
    assert (values["energy.node"].kind, values["energy.cpu_seconds"].kind) == ("measured", "derived"), "they do not rest on it"


def test_the_energies_of_the_slot_window_give_wr() -> None:
    for meter in ("counter", "model"):
        values = figures(sampled(meter=meter))
        busy, overhead, idle = (values[f"energy.window.{name}"].value or 0.0 for name in ("busy", "overhead", "idle"))
        assert busy > 0
        assert 100 * idle / (busy + overhead + idle) == values["energy.idle_share"].value
        assert idle == pytest.approx(values["energy.idle"].value)


def test_without_a_slot_window_its_energies_are_null_with_the_reason_of_wr() -> None:
    values = figures(None)
    for name in ("busy", "overhead", "idle"):
        found = values[f"energy.window.{name}"]
        assert (found.value, found.reason_if_null) == (None, values["energy.idle_share"].reason_if_null)


def test_samples_of_less_than_95_percent_of_the_run_give_estimates() -> None:
    series = sampled().power["package-0"]
    for last, kind in ((19.2, "measured"), (18.5, "estimated")):
        cut = [t for t in series.times if t <= ns(last)] + [ns(last)] * (ns(last) not in series.times)
        values = figures(metered(EnergySeries(cut, [series.at(t) for t in cut])))
        assert values["energy.node"].kind == kind
        assert values["energy.trial"].kind == ("derived" if kind == "measured" else "estimated")
        assert values["energy.job"].coverage == pytest.approx(last / 20)
    assert "samples cover 92% of the run" in values["energy.job"].source


def test_a_gap_in_the_samples_is_not_covered() -> None:
    series = sampled().power["package-0"]
    kept = [t for t in series.times if not ns(3) < t < ns(15)]
    with_gap = EnergySeries(kept, [series.at(t) for t in kept])
    assert account_of(metered(with_gap)).coverage == pytest.approx(8 / 20)
    assert account_of(metered(with_gap, longest_gap_ns=ns(15))).coverage == 1.0, "a meter that reads more rarely says so"


def test_parts_that_used_more_cpu_time_than_the_host_are_a_negative_residual() -> None:
    simulation = one_trial()
    samples = sampled(simulation)
    half = tuple(msgspec.structs.replace(sample, busy_ns=sample.busy_ns // 2) for sample in samples.usage)
    honest, double = figures(samples, simulation), figures(replace(samples, usage=half), simulation)
    assert honest["energy.residual_share"].value == pytest.approx(0, abs=0.5)
    share = double["energy.residual_share"].value
    assert share is not None
    assert share < -10
    assert [flag.name for flag in residual_flags(account_of(replace(samples, usage=half), simulation))] == ["energy_residual"]


def test_samples_that_miss_the_run_are_no_energy() -> None:
    samples = sampled().shifted(ns(1000))
    assert account_of(samples).reason == "no power sample lies in the run"


def test_without_an_idle_baseline_the_node_is_known_and_nothing_is_split() -> None:
    values = figures(with_header(sampled(), idle_watts={}))
    assert values["energy.node"].value is not None
    assert values["energy.job"].reason_if_null == "the idle power of the host is not known, so its energy cannot be split"
    assert values["energy.residual"].value is None


def test_a_host_that_draws_less_than_its_baseline_has_no_dynamic_energy() -> None:
    times = sampled().power["package-0"].times
    account = account_of(metered(EnergySeries(times, [IDLE_WATTS / 2 * (t - times[0]) / 1e9 for t in times])))
    assert joules(account.attempts["t00", 0]) == pytest.approx(10 * IDLE_WATTS / 2 / 4)
    assert joules(account.parts["coordinator"]) == 0
    assert account.node is not None
    everything = sum(map(joules, account.parts.values())) + sum(map(joules, account.attempts.values()))
    assert everything == pytest.approx(joules(account.node))


def test_trials_on_another_host_have_modelled_energy_and_none_by_this_hosts_counters() -> None:
    simulation = one_trial()
    process = simulation.log.writers[1].process
    simulation.log.writers[1].process = msgspec.structs.replace(process, host="pod-1")
    modelled = figures(sampled(simulation, "model"), simulation)
    assert modelled["energy.trial"].value == pytest.approx((7.5 * 20 + 10 * 5) / 3.6e6)
    assert modelled["energy.node"].reason_if_null == "trials ran on other hosts than the one that was metered"
    counted = figures(sampled(simulation), simulation)
    for name in ("energy.trial", "energy.job", "energy.idle"):
        assert counted[name].reason_if_null == "trials ran on other hosts than the one that was metered", name
    assert counted["energy.node"].kind == "measured"


def test_domains_named_by_their_only_host_are_this_hosts() -> None:
    samples = sampled()
    named = replace(samples, power={"node-1:9100/package-0": samples.power["package-0"]})
    named = with_header(named, idle_watts={"node-1:9100/package-0": IDLE_WATTS})
    assert account_of(named).attempts == account_of(samples).attempts


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
    used = slot_uses(run, presence_of(run), ns(10))[0]
    busy = {key: sum((end - start) * share for start, end, share in shares) / 1e9 for key, shares in used.busy.items()}
    assert busy == {("a", 0): 3.0, ("b", 0): 3.0}
    account = energy_account(run, Evidence(samples=sampled(meter="model")))
    assert joules(account.attempts["a", 0]) == pytest.approx(15)


def test_an_attempt_that_nobody_read_leaves_trials_and_job_unknown_and_says_so() -> None:
    simulation = one_trial()
    simulation.log.submit("t01", 4)
    lost = simulation.log.process("worker", 4)
    lost.start("t01", 5, slot=1, process_cpu=0.5)
    simulation.log.coordinator.add(schema.TrialEnded, 9, trial="t01", state="failed", epochs=0, by="coordinator")
    samples = sampled(simulation)
    rare = tuple(sample for sample in samples.usage if not ns(-1) < sample.t < ns(30))
    values = figures(replace(samples, usage=rare), simulation)
    assert values["energy.trial"].value is None
    assert "no sample saw its process" in (values["energy.trial"].reason_if_null or "")
    assert values["energy.job"].value is None
    assert values["waste.default.energy"].value is None


def test_a_run_whose_undeploy_never_ended_has_trials_but_no_job() -> None:
    simulation = one_trial()
    events = simulation.log.coordinator.events
    events[:] = [event for event in events if getattr(event, "step", "") != "undeploy"]
    values = figures(sampled(simulation, "model"), simulation)
    assert values["energy.trial"].value is not None
    assert values["energy.job"].reason_if_null == "un-deploy did not end"


def test_without_use_samples_the_model_knows_trials_and_slots_alone() -> None:
    simulation = one_trial()
    values = figures(replace(sampled(simulation, "model"), usage=()), simulation)
    assert values["energy.trial"].value == pytest.approx((7.5 * 20 + 10 * 5) / 3.6e6)
    assert values["energy.trial"].kind == "estimated"
    assert values["energy.idle"].value is not None
    for name in ("energy.overhead", "energy.coordinator", "energy.job", "energy.node", "energy.residual"):
        assert values[name].reason_if_null == "no use of processes was sampled", name


def test_the_model_has_no_residual_and_no_flag_of_one() -> None:
    simulation = one_trial()
    samples = with_header(sampled(simulation, "model"), cpus=1)  # fewer than the slots reserve
    ticks = tuple(msgspec.structs.replace(sample, busy_ns=sample.busy_ns // 2) for sample in samples.usage)
    values = figures(replace(samples, usage=ticks), simulation)
    for name in ("energy.residual", "energy.residual_share"):
        assert (values[name].value, values[name].reason_if_null) == (None, NO_NODE_METER)
    assert values["energy.node"].value is not None
    assert residual_flags(account_of(replace(samples, usage=ticks), simulation)) == ()
    assert values["energy.unreserved"].value == 0
    counted = figures(with_header(sampled(simulation), cpus=1), simulation)
    assert counted["energy.residual"].value == pytest.approx(0, abs=1e-6)


@given(simulations())
@settings(max_examples=20, deadline=None)
def test_no_sample_at_all_is_no_error_either(simulation: Simulation) -> None:
    head: Header = header("model", "estimated")
    usage = (UsageSample(t=0, busy_ns=0),)
    for samples in (Samples(header=head), Samples(header=head, usage=usage)):
        assert figures(samples, simulation)["energy.job"].value is None


def test_processor_time_that_lies_in_two_intervals_costs_what_each_of_them_does() -> None:
    costs = _CpuCosts([0, 10, 20], [100.0, 300.0], [CpuPiece(0, 20, 20.0)])  # 10 and 30 J per ns of CPU time
    assert costs.pieces([CpuPiece(5, 15, 10.0)]) == [EnergyPiece(5, 10, 50.0), EnergyPiece(10, 15, 150.0)]
