"""What a meter did not see is unknown, and never 0; what lies a moment before or after its samples is not lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from builders.energy_runs import IDLE_WATTS, account_of, figures, metered, sampled, with_header
from builders.event_logs import ns
from tuneoff.record.metric_value import MetricValue
from tuneoff.record.samples.schema import EnergySeries

ENERGY = ("energy.node", "energy.trial", "energy.trials", "energy.job", "energy.idle", "energy.residual", "energy.idle_share")


def between(start: float, end: float) -> EnergySeries:
    """Return the counter as a meter saw it that was there for a part of the run."""
    whole = sampled().power["package-0"]
    times = sorted({ns(start), ns(end), *(t for t in whole.times if ns(start) < t < ns(end))})
    return EnergySeries(times, [whole.at(t) for t in times])


def check_unknown(values: Mapping[str, MetricValue], reason: str) -> None:
    """Check that no energy that the meter tells has a value, and why."""
    for name in ENERGY:
        assert (values[name].value, values[name].reason_if_null) == (None, reason), name


@pytest.mark.parametrize(
    ("start", "end", "reason"),
    [
        (-1, 4, "package-0 was sampled only up to 4.0 s of the run's 20.0 s"),
        (-1, 9, "package-0 was sampled only up to 9.0 s of the run's 20.0 s"),
        (16, 21, "package-0 was sampled only from 16.0 s of the run on"),
    ],
)
def test_a_meter_that_was_there_for_a_part_of_the_run_tells_no_energy(start: float, end: float, reason: str) -> None:
    values = figures(metered(between(start, end)))
    check_unknown(values, reason)
    assert values["waste.default.energy"].value is None
    assert values["energy.cpu_seconds"].value is not None, "the CPU time is known all the same"
    # the control: what the samples themselves hold is less than the truth, and no 0
    whole = figures(sampled())["energy.node"].value
    assert whole is not None
    assert 0 < between(start, end).energy(0, ns(20)) < 0.7 * whole


def test_a_moment_before_and_after_the_samples_has_the_power_next_to_it() -> None:
    steady = EnergySeries([ns(1.5), ns(2), ns(11), ns(18.5)], [0.0, 50.0, 950.0, 1700.0])  # 100 W
    values = figures(metered(steady))
    node = values["energy.node"]
    assert node.value == pytest.approx(100 * 20)
    assert node.kind == "estimated"
    assert node.coverage == pytest.approx(17 / 20)
    assert values["energy.residual_share"].value == pytest.approx(0, abs=0.5)
    assert steady.energy(0, ns(20)) == pytest.approx(1700), "the samples alone would lose 15 %"


def test_the_power_at_an_end_is_a_mean_over_a_second() -> None:
    stepped = EnergySeries([ns(0), ns(9), ns(9.9), ns(10)], [0.0, 900.0, 900.0, 1000.0])  # the counter moves once a second
    assert stepped.reaching(ns(-2), ns(12)).energy(ns(-2), ns(12)) == pytest.approx(1400)
    assert stepped.reaching(ns(-2), ns(12)).energy(ns(2), ns(7)) == stepped.energy(ns(2), ns(7))
    assert stepped.reaching(ns(1), ns(10)) is stepped
    single = EnergySeries([ns(3)], [0.0])
    assert single.reaching(0, ns(9)) is single


def test_a_domain_that_gave_no_sample_is_not_left_out_of_the_hosts_energy() -> None:
    both = {"package-0": IDLE_WATTS, "package-1": IDLE_WATTS}
    silent = with_header(sampled(), domains=tuple(both), idle_watts=both)
    check_unknown(figures(silent), "the meter gave no sample of package-1 in this run")


@pytest.mark.parametrize("domain", ["gpu-0", "slot-0", "other-host/package-0"])
def test_a_domain_that_the_run_does_not_need_may_be_silent(domain: str) -> None:
    silent = with_header(sampled(), domains=("package-0", domain))
    assert figures(silent)["energy.job"] == figures(sampled())["energy.job"]


def test_a_gpu_that_nobody_trained_on_costs_the_run_no_energy_where_it_broke() -> None:
    samples = sampled()
    beside = with_header(samples, domains=("package-0", "gpu-0"), idle_watts={**samples.header.idle_watts, "gpu-0": 10.0})
    broken = replace(beside, power={**samples.power, "gpu-0": EnergySeries([ns(-1), ns(2)], [0.0, 30.0])})
    assert figures(broken)["energy.node"] == figures(samples)["energy.node"]
    whole = EnergySeries([ns(-1), *map(ns, range(22))], [10.0 * t for t in range(23)])
    sound = replace(beside, power={**samples.power, "gpu-0": whole})
    node, alone = figures(sound)["energy.node"].value, figures(samples)["energy.node"].value
    assert node is not None
    assert alone is not None
    assert node == pytest.approx(alone + 10 * 20), "the control: one that did not break is in the node's energy"


def test_counters_that_stand_still_are_no_host_that_uses_nothing() -> None:
    times = sampled().power["package-0"].times
    still = figures(metered(EnergySeries(times, [0.0] * len(times))))
    check_unknown(still, "the meter does not count: package-0 stood still over the run")


def test_a_meter_that_is_asked_for_every_10_seconds_covers_a_run_that_it_reads_a_little_late() -> None:
    rare = EnergySeries([ns(-0.2), ns(9.9), ns(20.1)], [0.0, 1010.0, 2030.0])
    assert account_of(metered(rare, longest_gap_ns=ns(10))).reason is not None
    every = metered(rare, interval_ns=ns(10), longest_gap_ns=ns(30))  # as the sampler writes it
    assert account_of(every).coverage == 1.0


def test_a_run_without_a_test_has_no_energy_of_a_test() -> None:
    values = figures(sampled())
    assert (values["energy.test"].value, values["energy.test"].reason_if_null) == (None, "no model was tested")
    assert values["energy.job"].value is not None
    assert values["energy.residual"].value is not None
