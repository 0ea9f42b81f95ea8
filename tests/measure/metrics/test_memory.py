"""Memory of trials with what they started."""

from __future__ import annotations

import msgspec

from builders.event_logs import run_a
from builders.worked_examples import header
from tuneoff.measure.attribution.account import EnergyAccount
from tuneoff.measure.use import memory_metrics
from tuneoff.record.metric_value import Metrics
from tuneoff.record.run_record import RunRecord
from tuneoff.record.samples.reader import Evidence, Samples
from tuneoff.record.samples.schema import ProcessUsage, UsageSample

SECOND = 1_000_000_000
MB = 1_000_000
HEADER = header("none", "estimated", supervisor="h:7:70")
RUN = run_a()


def of(evidence: Evidence, run: RunRecord = RUN) -> Metrics:
    return memory_metrics(run, evidence, EnergyAccount())


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
