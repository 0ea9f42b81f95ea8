from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from builders.event_logs import run_a
from builders.worked_examples import header
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.use import memory_metrics
from tuneoff.record.metric_value import Metrics
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import NO_EVIDENCE, Evidence, Samples
from tuneoff.record.samples.schema import ProcessUsage, UsageSample

SECOND = 1_000_000_000
MB = 1_000_000
HEADER = header("none", "estimated", supervisor="h:7:70")
RUN = run_a()


def of(evidence: Evidence, run: RunRecord = RUN) -> Metrics:
    return memory_metrics(run, evidence, EnergyAccount())


def sampled() -> Evidence:
    """Two looks, two seconds apart, at a process that trains, at the supervisor, and at a process of someone else."""
    name = RUN.trials[0].attempts[0].process
    assert name is not None
    _, pid, started = name.rsplit(":", 2)

    def look(t: int, pss: int | None, rss: int, cpu: int, own: int) -> UsageSample:
        processes = (
            ProcessUsage(int(pid), int(started), 1, 0, 0, rss, pss),
            ProcessUsage(7, 70, 1, cpu, 0, 50 * MB, None),
            ProcessUsage(8, 80, 1, 0, 0, 9000 * MB, 9000 * MB),
        )
        return UsageSample(t=t, busy_ns=0, own_cpu_ns=own, processes=processes, rss_bytes=rss + 50 * MB)

    usage = (look(0, 300 * MB, 400 * MB, 3 * SECOND, 0), look(2 * SECOND, 200 * MB, 350 * MB, 5 * SECOND, 10_000_000))
    return Evidence(samples=Samples(header=HEADER, usage=usage))


def test_peaks_are_the_greatest_of_the_trials_and_of_the_tree() -> None:
    values = of(sampled())
    assert values["memory.peak_rss"].value == 400
    assert values["memory.peak_pss"].value == 300
    assert values["memory.tree_peak_rss"].value == 450
    assert {value.unit for name, value in values.items() if name.startswith("memory.")} == {"MB"}


def in_trees(*looks: tuple[ProcessUsage, ...], gone: tuple[tuple[int, int], ...] = ()) -> Metrics:
    """Return the memory metrics of looks at processes, a second apart; `gone`: after the first."""
    usage = tuple(
        UsageSample(t=number * SECOND, busy_ns=0, processes=processes, gone=gone if number == 1 else ())
        for number, processes in enumerate(looks)
    )
    return of(Evidence(samples=Samples(header=HEADER, usage=usage)))


def test_what_a_trial_started_counts_with_it_and_what_it_did_not_start_does_not() -> None:
    """A trial's process of 400 MB has a child of 300 MB, and that one a child of 20 MB; pages are shared."""
    name = RUN.trials[0].attempts[0].process
    assert name is not None
    _, pid, started = (int(part) if part.isdigit() else 0 for part in name.rsplit(":", 2))
    worker = ProcessUsage(pid, started, 1, 0, 0, 400 * MB, None)
    child, below = ProcessUsage(501, 5, pid, 0, 0, 300 * MB, None), ProcessUsage(502, 6, 501, 0, 0, 20 * MB, None)
    other = ProcessUsage(8, 80, 1, 0, 0, 9000 * MB, 9000 * MB)
    values = in_trees((worker, other), (child, below), ())
    assert values["memory.peak_rss"].value == 400
    assert values["memory.trial_tree_peak_rss"].value == 720
    assert values["memory.trial_tree_peak_pss"].value is None, "nobody looked at the pages of the large ones"
    looked = [(msgspec.structs.replace(one, pss_bytes=pss * MB),) for one, pss in ((child, 200), (worker, 350))]
    assert in_trees((worker, child, below), *looked)["memory.trial_tree_peak_pss"].value == 200 + 350 + 20
    assert in_trees((worker, child), (worker,), ())["memory.trial_tree_peak_rss"].value == 700
    just_forked = in_trees((worker, child), (worker,), gone=((501, 5),))  # it runs another program before the next look
    assert just_forked["memory.trial_tree_peak_rss"].value == 400
    again = ProcessUsage(501, 7, 1, 0, 0, 5000 * MB, None)  # the child's pid, given to a process of others
    assert in_trees((worker, child), (again, worker), gone=((501, 5),))["memory.trial_tree_peak_rss"].value == 400


def test_the_peak_that_a_process_read_of_itself_is_taken_before_samples() -> None:
    trial = RUN.trials[0]
    attempts = tuple(msgspec.structs.replace(one, peak_rss_bytes=700 * MB) for one in trial.attempts)
    value = of(sampled(), replace(RUN, trials=(replace(trial, attempts=attempts), *RUN.trials[1:])))["memory.peak_rss"]
    assert (value.value, value.source, value.kind) == (700, "trial_ended", "measured")


def test_the_suites_own_use_is_told() -> None:
    values = of(sampled())
    assert values["suite.sampler_cpu_share"].value == pytest.approx(0.5)
    assert values["suite.cpu_seconds"].value == 2


def test_the_driver_is_the_coordinator_and_the_suites_share_is_of_the_job() -> None:
    driven = replace(RUN, coordinators=("h:7:70",))
    values = memory_metrics(driven, sampled(), EnergyAccount(cpu_seconds=8.0))
    assert values["memory.driver_peak_rss"].value == 50
    assert values["suite.cpu_share"].value == 25
    elsewhere = of(sampled(), replace(RUN, coordinators=("other:7:70",)))
    assert elsewhere["memory.driver_peak_rss"].value is None
    assert elsewhere["suite.cpu_share"].value is None


def test_without_samples_everything_is_null_with_its_reason() -> None:
    for value in of(NO_EVIDENCE).values():
        assert value.value is None
        assert "no power was sampled" in (value.reason_if_null or "")


def test_a_process_that_no_sample_saw_has_no_peak() -> None:
    values = of(Evidence(samples=Samples(header=HEADER)))
    assert {name: value.value for name, value in values.items()} == dict.fromkeys(values)
    assert "no sample saw" in (values["memory.peak_rss"].reason_if_null or "")
