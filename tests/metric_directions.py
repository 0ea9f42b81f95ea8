"""Which way of each metric is better."""

LOWER = """
time.jct time.jct_without_test time.jct_without_metric_collection time.optimization time.trial time.unassigned
time.clock_uncertainty quality.validation quality.validation_of_core_best quality.test goal.trials goal.epochs
goal.seconds trials.refused trials.retries trials.failed trials.cancelled trials.timed_out trials.failed_before_start
trials.never_started failures.framework failures.workload failures.infrastructure failures.user trial_execution.mean
trial_execution.median trial_execution.max slots.slot_time slots.overhead overhead.per_trial overhead.process_start
overhead.report overhead.per_report stop.epochs_after_decision stop.ignored stop.busy_after_decision
stop_latency.median stop_latency.mean stop_latency.max waste.default.time waste.default.core_time waste.post_goal.time
waste.post_goal.core_time waste.default.cost waste.post_goal.cost waste.default.energy waste.post_goal.energy
energy.trial energy.job energy.job_low energy.job_high energy.per_completed_trial energy.per_trained_epoch
energy.job_without_test energy.per_completed_trial_without_test carbon.job_without_test cost.job_without_test
cost.per_completed_trial_without_test energy.reserved_core_seconds carbon.job cost.job cost.per_completed_trial
"""
HIGHER = "trials.completed trials.per_second slots.utilization pruning.saved_epochs pruning.saved_time pruning.saved_energy"
DIRECTIONS = {**dict.fromkeys(LOWER.split(), "min"), **dict.fromkeys(HIGHER.split(), "max")}
