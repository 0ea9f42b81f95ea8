"""Which way of each metric is better, and how much of it is noise between two runs of the same experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tuneoff.experiment.metric_catalogue import general_name
from tuneoff.record.metric_value import MetricValue

Values = Mapping[str, MetricValue]


@dataclass(frozen=True)
class Direction:
    """`tolerance`: the share of the honest value by which another run may be better by chance; `least`: in the metric's unit."""

    better: Literal["lower", "higher"]
    tolerance: float = 0.0
    least: float = 0.0


COUNT_LOWER, COUNT_HIGHER = Direction("lower"), Direction("higher")
SLEPT = Direction("lower", 0.12, 20.0)  # ms in which the workload sleeps; one epoch of a trial is 10 % of it
SAVED = Direction("higher", 0.12)
STAGE = Direction("lower", 0.30, 40.0)  # ms per trial: what the machine takes for an import, a switch, a file
WHOLE = Direction("lower", 0.30, 500.0)  # ms: processes start and end in it, which varies by tenths of seconds
WHOLE_SHARE = Direction("lower", 0.30)

_GROUPS: dict[str, Direction] = {
    "time.jct time.jct_without_test time.jct_without_metric_collection time.optimization time.trial": WHOLE,
    "time.unassigned time.clock_uncertainty": COUNT_LOWER,
    "quality.validation quality.validation_of_core_best quality.test goal.trials goal.epochs": COUNT_LOWER,
    "goal.seconds": WHOLE_SHARE,
    "trials.refused trials.retries trials.failed trials.cancelled trials.timed_out trials.failed_before_start": COUNT_LOWER,
    "trials.never_started failures.framework failures.workload failures.infrastructure failures.user": COUNT_LOWER,
    "trials.completed": COUNT_HIGHER,
    "trials.per_second": Direction("higher", 0.30),
    "trial_execution.mean trial_execution.median trial_execution.max": SLEPT,
    "slots.slot_time": WHOLE_SHARE,
    "slots.overhead": Direction("lower", 0.30, 0.3),  # slot-s
    "slots.utilization": Direction("higher", 0.12),
    "overhead.per_trial overhead.process_start overhead.report overhead.per_report": STAGE,
    "stop.epochs_after_decision stop.ignored": COUNT_LOWER,
    "stop.busy_after_decision": SLEPT,
    "stop_latency.median stop_latency.mean stop_latency.max": STAGE,
    "waste.default.time waste.default.core_time waste.post_goal.time waste.post_goal.core_time": SLEPT,
    # the least: what 20 ms of a slot cost, in USD, kWh and g
    "waste.default.cost waste.post_goal.cost": Direction("lower", 0.12, 3e-7),
    "waste.default.energy waste.post_goal.energy": Direction("lower", 0.30, 3e-8),
    "pruning.saved_epochs": COUNT_HIGHER,
    "pruning.saved_time": SAVED,
    "pruning.saved_energy": Direction("higher", 0.30),
    "energy.trial": WHOLE_SHARE,
    "energy.job energy.job_low energy.job_high energy.per_completed_trial energy.per_trained_epoch": WHOLE_SHARE,
    "energy.job_without_test energy.per_completed_trial_without_test": WHOLE_SHARE,
    "carbon.job_without_test": WHOLE_SHARE,
    "cost.job_without_test cost.per_completed_trial_without_test": WHOLE_SHARE,
    "energy.reserved_core_seconds": WHOLE_SHARE,
    "carbon.job": WHOLE_SHARE,
    "cost.job cost.per_completed_trial": WHOLE_SHARE,
}
DIRECTIONS: dict[str, Direction] = {name: direction for names, direction in _GROUPS.items() for name in names.split()}

_EXCLUDED: dict[str, str] = {
    "noise: the start and end of processes, the same in all runs": (
        "time.deploy time.setup time.result_collection time.test time.metric_collection time.undeploy time.preparation "
        "time.evaluation time.result_collection_from_last_completed trial_execution.load slots.trial_gap_median stage.NAME "
        "overhead.between overhead.dispatch overhead.exit overhead.vacant overhead.submission_to_start "
        "overhead.job_start overhead.further_trial"
    ),
    "noise: memory and CPU time of interpreters": (
        "memory.trial_tree_peak_rss memory.trial_tree_peak_pss "
        "memory.peak_rss memory.peak_pss memory.tree_peak_rss memory.driver_peak_rss suite.cpu_share suite.cpu_seconds "
        "memory.device_peak[N] suite.sampler_cpu_share "
        "storage.operations storage.bytes storage.client_cpu storage.server_cpu "
        "energy.cpu_seconds_without_test "
        "energy.cpu_seconds "  # in short runs they start more than they train
        "energy.idle_share"
    ),
    "a share or a part: it falls where another part grows; the whole is compared": (
        "slots.overhead_share slots.idle_share slots.idle slots.busy[N] slots.overhead[N] slots.idle[N] "
        "energy.idle "
        "energy.step.NAME "
        "carbon.step.NAME "
        "cost.step.NAME "
    ),
    "work or how it ended, neither good nor bad: what it cost is compared": (
        "trials.submitted trials.used trials.distinct_configurations trials.of_budget trials.pruned trials.ended_early "
        "overhead.reports epochs.trained epochs.of_budget trial_execution.min slots.busy slots.overlapped slots.crowded "
        "slots.greatest_overlap"
    ),
    "of the machine, its grid and the meter, not of the framework": (
        "energy.node "
        "energy.weight_ratio_low energy.weight_ratio_high "
        "host.other_cpu_share carbon.trial_intensity "
        "carbon.job_intensity"
    ),
    "of the training, not of what runs it": "items.per_second items.variation phase.NAME",
    "of runs that end at a goal or have several: the honest ones do not": "goal.NAME.seconds waste.post_goal.trials",
    "of the test split: equal where quality.test is, or a difference of two that are compared": "quality.optimism test.NAME",
}
EXCLUDED: dict[str, str] = {name: reason for reason, names in _EXCLUDED.items() for name in names.split()}


def improvements(worse: Values, *honest: Values) -> list[str]:
    """Return one line for each metric that is better in a run than in every honest one, by more than chance allows."""
    found = []
    for name, metric in worse.items():
        direction = DIRECTIONS.get(general_name(name))
        values = [run[name].value for run in honest if name in run]
        known = [value for value in values if value is not None]
        if direction is None or metric.value is None or not known:
            continue
        sign = 1 if direction.better == "lower" else -1
        best = min(known, key=lambda value: sign * value)
        gain = sign * (best - metric.value)
        if gain > max(direction.tolerance * abs(best), direction.least) + 1e-9:
            found.append(f"{name}: {metric.value:g} {metric.unit}, honest {best:g}")
    return found
