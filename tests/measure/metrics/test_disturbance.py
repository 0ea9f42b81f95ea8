"""How much of a run's processors other programs used: in which window, of whose processors, and what is never theirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from builders.event_logs import T0, Log, ns
from builders.specs import make_spec
from builders.worked_examples import header
from tuneoff.measure.derived import with_metrics
from tuneoff.measure.use import DISTURBED, SHARE
from tuneoff.record.derive import derive
from tuneoff.record.events.schema import Step
from tuneoff.record.run_record import FlagRecord, RunRecord
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import ProcessUsage, UsageSample
from tuneoff.record.store import is_final

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


def elsewhere(usable: Curve) -> Evidence:
    """Return samples of a run that may use one processor, of which others use so much; on both they use three times a half."""
    return sampled(between(0, 30, 1.5), usable=usable, usable_cpus=1)


def judged(run: RunRecord, evidence: Evidence) -> tuple[float | None, list[str], str]:
    """Return the share, the flags, and of what window it is or why there is none."""
    found = with_metrics(run, evidence)
    metric = found.metrics[SHARE]
    assert metric.unit == "%"
    return metric.value, [flag.name for flag in found.flags if flag.name == DISTURBED], metric.reason_if_null or metric.source


IN_TRIALS, IN_ALL = "samples in the trial step", "samples in the whole job"
BEFORE = between(0, 9, 1.0)


def idle(t: float) -> float:
    return 0.0


def ahead(t: float) -> float:
    """Nothing is theirs but the ticks by which the kernel's count of the host is ahead: two per processor."""
    return 0.2 * 1.0 + 0.039 if t >= 10.6 else 0.0


def behind(t: float) -> float:
    return -0.05 if t > 15 else 0.0


@pytest.mark.parametrize(
    ("run", "evidence", "share", "flagged", "window"),
    [
        pytest.param(a_run(), sampled(between(10, 20, 0.5)), 25.0, True, IN_TRIALS, id="half of one of two processors"),
        pytest.param(a_run(), sampled(between(20.1, 30, 2.0)), 0.0, False, IN_TRIALS, id="after the trial step"),
        pytest.param(a_run(10.0, 10.9), sampled(BEFORE), 15.0, True, IN_ALL, id="9 of 60 s, as the step is not a window"),
        pytest.param(a_run(10.0, 11.0), sampled(BEFORE), 0.0, False, IN_TRIALS, id="a step of a second is a window"),
        # over 10 s of two processors the limit is 2 s, and two ticks of each are 0.04 s
        pytest.param(a_run(), sampled(between(0, 30, 0.2)), 10.0, False, IN_TRIALS, id="at the limit"),
        pytest.param(a_run(), sampled(between(0, 30, 0.203)), 10.15, False, IN_TRIALS, id="ticks above the limit"),
        pytest.param(a_run(), sampled(between(0, 30, 0.21)), 10.5, True, IN_TRIALS, id="above the limit"),
        pytest.param(a_run(10.0, 11.0), sampled(ahead), 11.95, False, IN_TRIALS, id="ticks of a window of a second"),
        pytest.param(a_run(), sampled(behind), 0.0, False, IN_TRIALS, id="what lags behind is not a negative share"),
        pytest.param(a_run(), sampled(between(0, 30, 2.0)), 100.0, True, IN_TRIALS, id="control: as much by others"),
        pytest.param(a_run(), elsewhere(between(0, 30, 0.5)), 50.0, True, IN_TRIALS, id="on the processor of the run"),
        pytest.param(a_run(), elsewhere(idle), 0.0, False, IN_TRIALS, id="on a processor that the run may not use"),
    ],
)
def test_others_disturb_a_run_where_and_as_far_as_they_take_its_processors(
    run: RunRecord, evidence: Evidence, share: float, flagged: bool, window: str
) -> None:
    found, flags, source = judged(run, evidence)
    assert found == pytest.approx(share, abs=1e-6)
    assert (flags, source) == ([DISTURBED] * flagged, window)


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


# --- who is charged with a framework that did not start ---

FLAGGED = FlagRecord(name="steal", text="3 %")


def a_failure(step: Step = "deploy", charged: str = "framework", **changes: Any) -> RunRecord:
    """Return a run of 30 s that failed in a step."""
    log = Log()
    if step != "deploy":
        log.step("deploy", 0, 1)
    log.step(step, 1, 29, error="Exception: the node timed out during startup", charged=charged)
    log.step("undeploy", 29, 30)
    return replace(derive(log.pairs(), make_spec()), **changes)


@pytest.mark.parametrize(
    ("run", "evidence", "charged"),
    [
        pytest.param(a_failure(), sampled(between(0, 30, 0.5)), "infrastructure", id="others were busy"),
        pytest.param(a_failure(), sampled(idle), "framework", id="control: a quiet machine"),
        pytest.param(a_failure(flags=(FLAGGED,)), sampled(idle), "infrastructure", id="another flag of the machine"),
        pytest.param(a_failure("collect"), sampled(between(0, 30, 0.5)), "framework", id="it had started"),
        pytest.param(a_failure(charged="user"), sampled(between(0, 30, 0.5)), "user", id="a package is missing"),
    ],
)
def test_a_framework_that_did_not_start_is_charged_where_the_machine_was_in_order(
    run: RunRecord, evidence: Evidence, charged: str
) -> None:
    found = with_metrics(run, evidence)
    assert found.status == "failed"
    assert (found.charged, is_final(found)) == (charged, charged == "framework")
    assert with_metrics(found, evidence).charged == charged  # a record that is read and measured again says the same
