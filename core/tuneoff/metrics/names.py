"""The names of the metrics that a run can have; a test holds them to `compute_metrics`."""

from __future__ import annotations

import re

from tuneoff.suggest import nearest

_NAMES = {
    "time": (
        "jct deploy setup trial result_collection test metric_collection undeploy unassigned jct_without_metric_collection "
        "preparation optimization evaluation result_collection_from_last_completed clock_uncertainty"
    ),
    "quality": "validation validation_of_core_best test optimism",
    "goal": "seconds trials epochs",
    "trials": (
        "submitted used never_started refused retries distinct_configurations of_budget completed pruned failed cancelled "
        "timed_out failed_before_start per_second"
    ),
    "epochs": "trained of_budget",
    "failures": "framework workload infrastructure user",
    "trial_execution": "mean median min max load",
    "slots": (
        "busy overhead idle slot_time overhead_share idle_share utilization overlapped greatest_overlap trial_gap_median "
        "busy[N] overhead[N] idle[N]"
    ),
    "overhead": "per_trial process_start between dispatch report exit vacant submission_to_start",
    "stop_latency": "median mean max",
    "stop": "epochs_after_decision busy_after_decision ignored",
    "waste": (
        "strict.time strict.core_time default.time default.core_time non_best.time non_best.core_time post_goal.time "
        "post_goal.core_time strict.cost default.cost non_best.cost post_goal.cost strict.energy default.energy non_best.energy "
        "post_goal.energy strict.carbon default.carbon non_best.carbon post_goal.carbon"
    ),
    "pruning": "saved_epochs saved_time saved_energy",
    "energy": (
        "trial trial_power job job_low job_high per_completed_trial per_trained_epoch trials overhead idle outside coordinator "
        "services test suite other unreserved node residual residual_share window.busy window.overhead "
        "window.idle idle_share step.deploy step.setup step.trial "
        "step.result_collection step.test step.metric_collection step.undeploy cpu_seconds trial_cpu_seconds "
        "reserved_core_seconds trial_core_seconds joules_per_cpu_second watts_per_core second_opinion"
    ),
    "carbon": (
        "trial_intensity trial_intensity_weighted job_intensity trials_left_out trials job per_completed_trial step.deploy "
        "step.setup step.trial step.result_collection step.test step.metric_collection step.undeploy"
    ),
    "cost": (
        "job slots head_node database energy per_completed_trial step.deploy step.setup step.trial step.result_collection "
        "step.test step.metric_collection step.undeploy"
    ),
    "memory": "peak_rss peak_pss tree_peak_rss",
    "nodes": "cpu_seconds peak_memory",
    "suite": "sampler_cpu_share cpu_seconds",
    "test": "NAME",  # a score of the workload
    "stage": "NAME",  # a piece of work that the framework's adapter times
}


def metric_names() -> tuple[str, ...]:
    """Return every name by family; `N` stands for a slot, `NAME` for a score of the test or a stage of the framework."""
    return tuple(f"{family}.{name}" for family, names in _NAMES.items() for name in names.split())


def general_name(name: str) -> str:
    """Return a metric's name with `N` for its slot and `NAME` for its score or stage: "test.accuracy" is a "test.NAME"."""
    return re.sub(r"^(test|stage)\..+", r"\1.NAME", re.sub(r"\[\d+\]$", "[N]", name))


def is_metric(name: str) -> bool:
    """Tell whether a run can have a metric of that name."""
    return general_name(name) in metric_names() and not name.endswith("[N]")


def unknown_metric(name: str) -> str:
    """Return one line: no metric of that name, the nearest one, and the others of its family, else the families."""
    family = name.partition(".")[0]
    if family in _NAMES:
        known = f"known of {family!r}: {', '.join(item for item in metric_names() if item.startswith(f'{family}.'))}"
    else:
        known = f"a name begins with one of: {', '.join(f'{item}.' for item in _NAMES)}"
    return f"no metric named {name!r}{nearest(name, metric_names())}; {known}"
