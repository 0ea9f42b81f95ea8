"""How much of a run's processors other programs used: in which window, of whose processors, and what is never theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders.event_logs import T0, Log, example_b, ns
from builders.specs import make_spec
from builders.worked_examples import COORDINATOR_B, PROCESSES_B, header, samples_b, used
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.evidence import Evidence
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.derive import derive
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.record.samples.reader import Samples
from tuneoff.record.samples.schema import ProcessUsage, UsageSample

Curve = Callable[[float], float]  # CPU seconds used up to a moment
COORDINATOR = (100, T0 - ns(1))


def a_run(trial_from: float = 10.0, trial_to: float = 20.0, end: float | None = 30.0, host: str = "h") -> RunRecord:
    """Return a run of one trial with a trial step between these seconds, in a process of this host."""
    log = Log()
    log.step("deploy", 0, trial_from - 0.1)
    log.submit("a", trial_from)
    worker = log.process("trial", trial_from, host=host)
    worker.start("a", trial_from, slot=0, process_cpu=0.0)
    worker.end("a", trial_to, "failed", 0, cpu=0.0, cause="x", charged="workload")
    if end is not None:
        log.step("undeploy", end - 0.1, end)
    return derive(log.pairs(), make_spec())


def sampled(
    others: Curve,
    own: Curve = lambda t: 0.0,
    *,
    last: float = 31.0,
    every: float = 0.2,
    usable: Curve | None = None,
    **header_fields: Any,
) -> Evidence:
    """Return samples of a host of two processors with a coordinator that uses `own`, and others."""
    usage = []
    for step in range(round((last + 1) / every) + 1):
        t = -1 + step * every
        cpu = own(t)
        usage.append(
            UsageSample(
                t=ns(t),
                busy_ns=ns(100 + cpu + others(t)),
                usable_busy_ns=None if usable is None else ns(50 + cpu + usable(t)),
                processes=(ProcessUsage(*COORDINATOR, 99, ns(cpu), 0, 0),),
            )
        )
    head = header("model", "estimated", cpus=2, interval_ns=ns(every), **header_fields)
    return Evidence(samples=Samples(header=head, usage=tuple(usage)))


def between(start: float, end: float, cores: float) -> Curve:
    """Return a use of so many processors between two moments."""
    return lambda t: cores * max(0.0, min(t, end) - start)


def judged(run: RunRecord, evidence: Evidence) -> tuple[float | None, list[str], str]:
    """Return the share, the flags, and of what window it is or why there is none."""
    found = with_metrics(run, evidence)
    metric = found.metrics[SHARE]
    assert metric.unit == "%"
    return metric.value, [flag.name for flag in found.flags if flag.name == DISTURBED], metric.reason_if_null or metric.source


def test_others_in_the_trial_step_disturb_a_run() -> None:
    share, flags, window = judged(a_run(), sampled(between(10, 20, 0.5)))
    assert share == pytest.approx(25.0)  # half of one of two processors
    assert flags == [DISTURBED]
    assert window == "samples in the trial step"


@pytest.mark.parametrize("others", [between(0, 9.9, 2.0), between(20.1, 30, 2.0)])
def test_others_before_and_after_the_trial_step_do_not(others: Curve) -> None:
    share, flags, _ = judged(a_run(), sampled(others))
    assert share == pytest.approx(0.0, abs=0.1)
    assert flags == []


def test_a_trial_step_under_a_second_is_no_window_and_the_whole_job_is() -> None:
    short, evidence = a_run(10.0, 10.9), sampled(between(0, 9, 1.0))
    share, flags, window = judged(short, evidence)
    assert share == pytest.approx(15.0)  # 9 of 60 processor seconds
    assert (flags, window) == ([DISTURBED], "samples in the whole job")
    share, flags, window = judged(a_run(10.0, 11.0), evidence)
    assert (flags, window) == ([], "samples in the trial step")


@pytest.mark.parametrize(("cores", "expected"), [(0.18, []), (0.2, []), (0.2 + 0.003, []), (0.21, [DISTURBED])])
def test_more_than_ten_percent_and_more_than_clock_ticks_are_needed(cores: float, expected: list[str]) -> None:
    """Over 10 s of two processors the limit is 2 s, and two ticks of each are 0.04 s."""
    assert judged(a_run(), sampled(between(0, 30, cores)))[1] == expected


def test_ticks_of_a_window_of_a_second_cannot_flag() -> None:
    """Nothing is theirs but the ticks by which the kernel's count of the host is ahead: two per processor."""

    def ahead(t: float) -> float:
        return 0.2 * 1.0 + 0.039 if t >= 10.6 else 0.0

    share, flags, _ = judged(a_run(10.0, 11.0), sampled(ahead))
    assert share == pytest.approx(11.95)
    assert flags == []


def test_what_lags_behind_is_no_negative_share() -> None:
    share, flags, _ = judged(a_run(), sampled(lambda t: -0.05 if t > 15 else 0.0))
    assert (share, flags) == (0.0, [])


def test_the_run_itself_is_nobody_else_however_much_it_uses() -> None:
    share, flags, _ = judged(a_run(), sampled(lambda t: 0.0, own=between(0, 30, 2.0)))
    assert share == pytest.approx(0.0)
    assert flags == []
    control, flags, _ = judged(a_run(), sampled(between(0, 30, 2.0)))
    assert control == pytest.approx(100.0)
    assert flags == [DISTURBED]


def test_workers_services_test_and_supervision_are_not_others() -> None:
    """Worked example B: four processes of trials, a coordinator, the test and the sampler, and 0.01 s of others a second."""
    log, spec = example_b()
    head, *lines = samples_b()
    usage = tuple(replace_time(line) for line in lines if isinstance(line, UsageSample))
    evidence = Evidence(samples=Samples(header=head, usage=usage))  # type: ignore[arg-type]
    share, flags, _ = judged(derive(log.pairs(), spec), evidence)
    own = sum(used(points, 44) for points in (COORDINATOR_B, *PROCESSES_B.values()))
    assert own > 40
    assert share == pytest.approx(100 * 0.01 / 2, abs=0.2)
    assert flags == []


def replace_time(line: UsageSample) -> UsageSample:
    fields = {name: getattr(line, name) for name in line.__struct_fields__}
    return UsageSample(**{**fields, "t": line.t - T0})


def test_others_on_processors_that_the_run_may_not_use_are_left_out() -> None:
    everywhere, here = between(0, 30, 1.5), between(0, 30, 0.5)
    share, flags, _ = judged(a_run(), sampled(everywhere, usable=here, usable_cpus=1))
    assert share == pytest.approx(50.0)
    assert flags == [DISTURBED]
    share, flags, _ = judged(a_run(), sampled(everywhere, usable=lambda t: 0.0, usable_cpus=1))
    assert share == pytest.approx(0.0)
    assert flags == []


@pytest.mark.parametrize(
    ("run", "evidence", "reason"),
    [
        (a_run(), Evidence(), "no power was sampled"),
        (a_run(), Evidence(samples=Samples(header=header("model", "estimated"))), "the use of the host was not sampled"),
        (a_run(host="pod-1"), sampled(between(0, 30, 2.0)), "trials ran on another host"),
        (a_run(), sampled(between(0, 30, 2.0), last=15.0), "samples cover 50% of the trial step"),
        (a_run(10.0, 10.5, end=None), sampled(between(0, 30, 2.0)), "un-deploy did not end"),
    ],
)
def test_where_samples_do_not_tell_it_is_unknown_and_not_flagged(run: RunRecord, evidence: Evidence, reason: str) -> None:
    share, flags, why = judged(run, evidence)
    assert share is None
    assert flags == []
    assert why.startswith(reason)


def test_a_flag_that_the_samples_do_not_bear_out_is_taken_away() -> None:
    flagged = replace(a_run(), flags=(FlagRecord(name=DISTURBED, text="edited"),))
    assert judged(flagged, sampled(lambda t: 0.0))[1] == []
    assert judged(flagged, sampled(between(0, 30, 1.0)))[1] == [DISTURBED]
